"""Toolset ``nano``: a shell and a literal search-and-replace, the tools of nano-agent 5.

Results equal nano-agent's, character for character (its tools.py, env.py and agent.py), so that
policies trained with nano-agent get the same text. Differences: paths are compared by parts, and
links are followed; an empty ``search`` is refused; an edit keeps line endings and encodings; killed
processes are reported; there is a tool ``submit``.
"""

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.text.truncate import head
from coding_gym.tools import prompts
from coding_gym.tools.commands import run_command
from coding_gym.tools.files import TextFile, is_inside, replace_once
from coding_gym.tools.toolset import SUBMIT, Refusal, Tool, ToolContext, Toolset

MAX_REPLY_CHARS = 2000
TRUNCATED_SUFFIX = "... output truncated"
NUDGE = "Use shell to explore or apply_patch to make changes. Do not stop working."
INVALID_PATCH = "invalid `apply_patch` arguments"
OUTSIDE = "Path must be inside the repository"
MISSING = "search string not found - try using grep to find the exact text"
SEVERAL = "search ambiguous: {num} matches - add more context to make search unique"

SYSTEM_PROMPT = f"""\
{prompts.INTRODUCTION}

Tools
- `shell` runs a bash command, `cmd`. Only the first {MAX_REPLY_CHARS} characters of its output \
are shown, so look for what you need with grep or find and read parts of files with sed or head.
- `apply_patch` replaces the text `search` by the text `replace` in one file, `file`. The text to \
find must occur exactly once: include enough of the lines around it, and keep whitespace as it is \
in the file.
- `submit` ends the work.

{prompts.HOW_TO_WORK}

{prompts.calls_as_json("shell", "cmd")}Each shell command {prompts.FRESH_SHELL}

Nobody can answer questions, and the number of replies is limited. A reply \
without a call after you have changed something ends the work. The repair is judged by tests that \
you cannot see, so do not edit tests to make them pass.
"""


def _shell(call: ToolCall, context: ToolContext) -> ToolResult:
    if "cmd" not in call.arguments:
        raise Refusal("shell tool missing required 'cmd' parameter")
    command = call.arguments["cmd"]
    if not isinstance(command, str):
        raise Refusal("shell tool parameter 'cmd' must be a string")
    try:
        result = run_command(command, context)
    except Refusal as refusal:
        failure = "command failed with exit code 1. Error output:\nExecution failed: "
        raise Refusal(f"{failure}{refusal.__cause__}") from refusal
    output = result.output.strip()
    if result.timed_out:  # nano-agent omits the output of the command
        output = f"Command timed out after {context.command_timeout_s:g}s"
    if result.ok:
        reply = output or "command succeeded"
    else:
        reply = f"command failed with exit code {result.exit_code}"
        reply += f". Error output:\n{output}" if output else ""
    # Notices, which nano-agent does not have, are never truncated.
    return ToolResult("\n".join((_truncated(reply), *result.notes)), ok=result.ok)


def _apply_patch(call: ToolCall, context: ToolContext) -> str:
    values = [call.arguments.get(name) for name in ("search", "replace", "file")]
    if not all(isinstance(value, str) for value in values) or not values[0]:
        raise Refusal(INVALID_PATCH)
    search, replace, file = (str(value) for value in values)
    try:
        for value in (file, search, replace):
            value.encode()
        if not is_inside(context, file):
            raise Refusal(OUTSIDE)
        original = TextFile.decode(file, context.sandbox.read_file(file))
        new_text, _, _ = replace_once(original, search, replace, missing=MISSING, several=SEVERAL)
        context.sandbox.write_file(file, original.encode(new_text))
    except UnicodeEncodeError as error:
        raise Refusal(INVALID_PATCH) from error
    except FileNotFoundError as error:
        raise Refusal(f"file {file} not found") from error
    except OSError as error:
        raise Refusal(f"patch operation failed: {error.strerror or error}") from error
    except InvalidArgumentError as error:  # the file is too large
        raise Refusal(f"patch operation failed: {error}") from error
    return "patch applied successfully"


def _truncated(reply: str) -> str:
    return head(reply, MAX_REPLY_CHARS, TRUNCATED_SUFFIX)


NANO = Toolset(
    name="nano",
    system_prompt=SYSTEM_PROMPT,
    tools=(
        Tool(
            name="shell",
            description="Run a bash command in the repository. Standard output and error come "
            f"back together, truncated to the first {MAX_REPLY_CHARS} characters.",
            parameters={"cmd": "The command, for example: grep -rn 'def parse' src"},
            run=_shell,
        ),
        Tool(
            name="apply_patch",
            description="Replace one piece of text in one file. The text to find must occur "
            "exactly once.",
            parameters={
                "search": "The text to find, copied exactly, with its whitespace and indentation",
                "replace": "The replacement text",
                "file": "The file's path relative to the repository, for example: src/parser.py",
            },
            run=_apply_patch,
        ),
        SUBMIT,
    ),
    no_call_reply=NUDGE,
    no_call_ends=True,
    refuse=_truncated,
    checks_arguments=False,
    unreadable="Malformed tool arguments JSON: {json_error}",
    unknown="unknown tool: {call.name}",
)
