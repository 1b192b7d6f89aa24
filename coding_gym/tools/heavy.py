"""Toolset ``heavy``: the tools of ``editor``, a repository map, and a prompt with steps.

Use this toolset to compare a heavyweight scaffold with light scaffolds such as ``nano``.
"""

import json
from dataclasses import replace
from importlib import resources

from coding_gym.calls import ToolCall
from coding_gym.program_output import last_line
from coding_gym.tools import files, prompts
from coding_gym.tools.editor import EDITOR, TOOLS
from coding_gym.tools.schemas import array
from coding_gym.tools.toolset import Refusal, Tool, ToolContext

MAX_CHARS = 4000

SYSTEM_PROMPT = f"""\
{prompts.INTRODUCTION}

Work in these steps, and go back if a result contradicts an earlier step.
1. Understand: read the report. Call `repo_map` for the most used definitions (in `paths`), then \
search with `bash` (grep -rn) for the names in the report, and read that code.
2. Reproduce: run a short command or a test that shows the problem, or write one.
3. Localise: follow the failing test or the traceback to the first wrong value. Read the \
callers of this code and the functions that it calls.
4. Fix: make the smallest change that repairs the cause, in the style of the code around it. If \
you change the arguments or the result of a function, check all its callers.
5. Verify: run the failing command again, then related tests. Remove files that you wrote only \
to reproduce the problem.
6. Submit: call `submit`.

Other tools
{TOOLS}

{prompts.calls_as_json("bash")}Each `bash` command {prompts.FRESH_SHELL}

{prompts.LAST_WORDS}"""


_PROGRAM = resources.files("coding_gym.tools").joinpath("repo_map.py")


def _repo_map(call: ToolCall, context: ToolContext) -> str:
    request = {"paths": call.arguments.get("paths", []), "max_chars": MAX_CHARS}
    result = context.sandbox.run_python(
        _PROGRAM.read_text(encoding="utf-8"),
        timeout_s=files.timeout_s(context),
        stdin=json.dumps(request).encode(),
    )
    if not result.ok:
        reason = "it took too long" if result.timed_out else last_line(result.output)
        raise Refusal(f"the repository could not be mapped: {reason:.300}")
    return result.output.removesuffix("\n")


HEAVY = replace(
    EDITOR,
    name="heavy",
    system_prompt=SYSTEM_PROMPT,
    tools=(
        Tool(
            name="repo_map",
            description="Show the most used definitions in the repository's Python files, with "
            "their lines.",
            optional=("paths",),
            parameters={
                "paths": array("Show only definitions in these files or folders", "string")
            },
            run=_repo_map,
        ),
        *EDITOR.tools,
    ),
)
