"""Toolset ``compact``: three tools in some 300 prompt tokens, for small models on a CPU."""

from dataclasses import replace

from coding_gym.calls import ToolCall
from coding_gym.tools import files
from coding_gym.tools.call_arguments import text
from coding_gym.tools.commands import bash_tool
from coding_gym.tools.toolset import SUBMIT, Tool, ToolContext, Toolset, name_of

MAX_REPLY_CHARS = 1000
_TEXT = {"type": "string"}

SYSTEM_PROMPT = """\
Repair the bug in the repository: read the code with bash, change it with edit, then submit. One \
call in each reply.
"""


def _edit(call: ToolCall, context: ToolContext) -> str:
    path, old, new = (text(call, name) for name in ("path", "old", "new"))
    file = files.read_file(context, path)
    changed, line, _ = files.replace_once(file, old, new)
    files.write_file(context, file, changed)
    return f"Replaced line {line} of {name_of(path)}."


COMPACT = Toolset(
    name="compact",
    system_prompt=SYSTEM_PROMPT,
    tools=(
        replace(
            bash_tool(MAX_REPLY_CHARS),
            description="Run a command.",
            parameters={"command": _TEXT},
        ),
        Tool(
            name="edit",
            description="Replace a text that occurs once.",
            parameters={"path": _TEXT, "old": _TEXT, "new": _TEXT},
            run=_edit,
        ),
        replace(SUBMIT, description="End the work."),
    ),
)
