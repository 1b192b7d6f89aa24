"""System prompts that explain a format, and the tools that a format can call."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from coding_gym.errors import InvalidArgumentError
from coding_gym.text.families import UNEXPLAINED
from coding_gym.tools.formats.response_template import open_parser
from coding_gym.tools.formats.table import row_of
from coding_gym.tools.prompts import FRESH_SHELL, KEPT_SHELL, calls_as_json
from coding_gym.tools.schemas import KnownTools, Schema

if TYPE_CHECKING:
    from coding_gym.text.tokenizers import Tokenizer
    from coding_gym.tools.toolset import Toolset

_TEXT = """\
These are the tools, each described by its JSON schema:
<tools>
{schemas}
</tools>
{explanation} For example:
{example}"""
_EXPLANATIONS = {
    "tags": "Write each call in tags, with the values of its parameters as they are, without "
    "quotes or escapes; lists and objects as JSON.",
    "block": "Write exactly one block of bash in each reply; it is run in the shell. A block that "
    "holds only the name of a tool that needs no argument calls that tool.",
}
_DEFAULT_EXPLANATION = "Write each call in exactly this form."


def check_format(
    tool_format: str, schemas: Sequence[Schema], tokenizer: "Tokenizer | None" = None
) -> tuple[str, ...]:
    """Returns the names of the tools that a format can call.

    Raises:
        UnknownNameError: There is no such format.
        InvalidArgumentError: The format can call none of the tools, or the format is ``template``
            and the tokenizer has no response template that works.
    """
    row, tools = row_of(tool_format), KnownTools(schemas)
    if row.body == "template":
        open_parser(tokenizer, schemas)
    if row.body != "block":
        return tools.names
    shell = tools.shell()
    if shell is None:
        raise InvalidArgumentError(
            f"tool_format {row.name!r} can call none of these tools: {', '.join(tools.names)}; "
            "use another toolset, or a format that calls any tool, such as 'hermes'"
        )
    return tuple(name for name in tools.names if name in (shell[0], *tools.nullary))


def explains_format(tool_format: str) -> bool:
    """Returns whether the system prompt explains the format; else a server or template does."""
    return tool_format not in UNEXPLAINED


def system_prompt(
    toolset: "Toolset", tool_format: str = "auto", *, keeps_shell: bool = False
) -> str:
    """Returns a policy's system prompt, with schemas and format if `explains_format` is true.

    The schemas of tools that the format cannot call are omitted.

    Args:
        toolset: The tools of the policy.
        tool_format: The format of its calls.
        keeps_shell: Whether one shell runs all commands of an episode.

    Raises:
        UnknownNameError: There is no such format.
        InvalidArgumentError: The format can call none of the tools.
    """
    prompt, schemas = toolset.system_prompt, toolset.schemas
    if keeps_shell:
        prompt = prompt.replace(FRESH_SHELL, KEPT_SHELL)
    if not explains_format(tool_format):
        return prompt
    row, names = row_of(tool_format), check_format(tool_format, schemas)
    lines = [json.dumps(s, ensure_ascii=False) for s in schemas if s["function"]["name"] in names]
    tool, argument = KnownTools(schemas).shell() or (names[0], "ARGUMENT")
    example = row.example.replace("TOOL_NAME", tool).replace("ARGUMENT", argument)
    instructions = _TEXT.format(
        schemas="\n".join(lines),
        explanation=_EXPLANATIONS.get(row.body, _DEFAULT_EXPLANATION),
        example=example.replace("VALUE", "ls -la" if argument != "ARGUMENT" else "VALUE"),
    )
    prompt = prompt.replace(calls_as_json(tool, argument), "")
    return f"{prompt.rstrip()}\n\n{instructions}\n"
