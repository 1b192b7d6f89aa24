"""Toolset ``compact``: three tools with short descriptions and answers, for small models.

``edit`` names lines by their numbers: small models seldom copy a text without a mistake, and a
number is shorter. The instructions, tools and call format of a prompt take fewer than 300 tokens
of SmolLM2's vocabulary. On a CPU the time of an episode grows with these tokens.
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
    path, new = text(call, "path"), text(call, "text")
    first = integer_argument(call, "line")
    files.replace_lines(context, path, first, integer_argument(call, "last", first), new)
    return f"edited {name_of(path)} at line {first}"


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
            description="Replace a line of a file, or line to last. Indents text as line is.",
            parameters={
                "path": {"type": "string"},
                "line": {"type": "integer"},
                "text": {"type": "string"},
                "last": {"type": "integer"},
            },
            optional=("last",),
            run=_edit,
        ),
        Tool(name="submit", description="End.", run=lambda call, _: submitted(call)),
    ),
    examples=tuple(ToolCall("bash", {"command": each}) for each in prompts.EXAMPLE_COMMANDS),
)
