"""Toolset ``compact``: three tools with short descriptions and results, for small models.

``edit`` replaces the occurrence of a text that is nearest to a line number, because small models
often make mistakes when they copy a whole line or count lines. The instructions, tools and call
format in a prompt have fewer than 300 tokens of SmolLM2's vocabulary, because on a CPU the time of
an episode grows with the length of the prompt.
"""

from dataclasses import replace

from coding_gym.calls import ToolCall
from coding_gym.tools import files
from coding_gym.tools.commands import bash_tool
from coding_gym.tools.toolset import SUBMIT, Refusal, Tool, ToolContext, Toolset, name_of

MAX_COMMAND_CHARS = 800

SYSTEM_PROMPT = """\
Fix the bug in the repository. Read the code with bash, change it with edit, then submit. Hidden \
tests judge the fix.
"""


def _edit(call: ToolCall, context: ToolContext) -> str:
    """Replaces the occurrence of a text nearest to a line; in that line, the first occurrence."""
    path, line, old, new = (call.arguments[name] for name in ("path", "line", "old", "new"))
    file = files.read_file(context, path)
    old, new = files.as_written(file, old, new)
    lines = file.text.split("\n")
    offset = len("\n".join(lines[: max(0, min(int(line), len(lines)) - 1)]))  # before the line
    next_start = file.text.find(old, offset)
    previous_start = file.text.rfind(old, 0, offset + len(old) - 1)
    starts = [start for start in (next_start, previous_start) if start >= 0]
    if not old or not starts:
        raise Refusal(f"the text to find does not occur in {name_of(path)}")
    start = min(starts, key=lambda start: abs(files.line_of(file.text, start) - line))
    files.write_file(context, file, file.text[:start] + new + file.text[start + len(old) :])
    return f"edited {name_of(path)} at line {files.line_of(file.text, start)}"


COMPACT = Toolset(
    name="compact",
    system_prompt=SYSTEM_PROMPT,
    tools=(
        Tool(
            name="bash",
            description="Run a command.",
            parameters={"command": {"type": "string"}},
            run=bash_tool(MAX_COMMAND_CHARS).run,
        ),
        Tool(
            name="edit",
            description="Replace text in a line of a file.",
            parameters={
                name: {"type": "integer" if name == "line" else "string"}
                for name in ("path", "line", "old", "new")
            },
            run=_edit,
        ),
        replace(SUBMIT, description="End."),
    ),
)
