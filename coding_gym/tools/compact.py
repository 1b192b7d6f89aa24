"""Toolset ``compact``: three tools with short descriptions and results, for small models.

``edit`` replaces the occurrence of a text that is nearest to a line number: small models seldom
copy a whole line, or find its number, without a mistake. The instructions, tools and call format of
a prompt take fewer than 300 tokens of SmolLM2's vocabulary, because on a CPU the time of an episode
grows with these tokens.
"""

from coding_gym.calls import ToolCall
from coding_gym.tools import files, prompts
from coding_gym.tools.call_arguments import integer_argument, text
from coding_gym.tools.commands import bash_tool
from coding_gym.tools.toolset import Tool, ToolContext, Toolset, name_of, submitted

MAX_COMMAND_CHARS = 800

SYSTEM_PROMPT = """\
Fix the bug in the repository. Read the code with bash, change it with edit, then submit. Hidden \
tests judge the fix.
"""


def _edit(call: ToolCall, context: ToolContext) -> str:
    path, old, new = (text(call, name) for name in ("path", "old", "new"))
    line = files.replace_nearest(context, path, integer_argument(call, "line"), old, new)
    return f"edited {name_of(path)} at line {line}"


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
        Tool(name="submit", description="End.", run=lambda call, _: submitted(call)),
    ),
    examples=tuple(ToolCall("bash", {"command": command}) for command in prompts.EXAMPLE_COMMANDS),
)
