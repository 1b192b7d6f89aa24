"""Tool calls to text, and the explanation of a format in a system prompt."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.formats.format import Format, KnownTools
from coding_gym.tools.formats.json_text import kinds_of, to_json
from coding_gym.tools.formats.python_calls import gemma_value
from coding_gym.tools.formats.response_template import open_parser
from coding_gym.tools.formats.table import row_of
from coding_gym.tools.formats.tag_calls import write_arguments
from coding_gym.tools.schemas import Schema

if TYPE_CHECKING:
    from coding_gym.text.tokenizers import Tokenizer

_TEXT = """\
Your chat format has a way of its own to call tools. These are the tools, each described by its \
JSON schema:
<tools>
{schemas}
</tools>
{explained} For example:
{example}"""
_EXPLAINED = {
    "tags": "Write each call in tags, with the values of its parameters as they are, without "
    "quotes or escapes; lists and objects as JSON.",
    "block": "Write exactly one block of bash in each reply; it is run in the shell. A block that "
    "holds only the name of a tool that needs no argument calls that tool.",
}
_EXPLAINED_ELSE = "Write a call in exactly this form, with its tool's name and its arguments."
_SAMPLES: Mapping[str, Any] = {"integer": 1, "number": 0.5, "boolean": True, "array": []}


def render_calls(
    calls: Sequence[ToolCall], tool_format: str = "json", schemas: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Writes calls so that `parse_action` reads the same calls back.

    Only ``openai`` keeps each ``call_id``; in other formats calls are numbered or have no id.

    Args:
        calls: The calls.
        tool_format: How to write them; ``auto`` writes ``json``.
        schemas: The tools, as OpenAI function schemas; ``bash_block`` needs them.

    Raises:
        UnknownNameError: There is no such format.
        InvalidArgumentError: An argument is not a JSON value, or this format cannot carry a call.
    """
    row = row_of(tool_format)
    if row.body == "template":
        raise InvalidArgumentError("the format 'template' only reads; name the model's own format")
    if row.body == "block" and len(calls) != 1:
        raise InvalidArgumentError(f"{row.name} carries exactly one call, got {len(calls)}")
    tools = KnownTools(schemas)
    try:
        texts = [row.written.format(**_fields(row, call, i, tools)) for i, call in enumerate(calls)]
    except InvalidArgumentError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"arguments must be JSON values: {error}") from error
    return row.around[0] + row.between.join(texts) + row.around[1] if texts else ""


def _fields(row: Format, call: ToolCall, index: int, tools: KnownTools) -> dict[str, Any]:
    """Returns the fields of templates: names, arguments in JSON or in the row's body, ids."""
    arguments = dict(call.arguments)
    text = to_json(arguments)
    return {
        "name": call.name,
        "name_json": to_json(call.name),
        "arguments": text,
        "arguments_text": to_json(text),
        "tags": write_arguments(row, arguments) if row.body == "tags" else "",
        "python": ", ".join(f"{key}={value!r}" for key, value in arguments.items()),
        # Gemma 4's chat template sorts them.
        "gemma": gemma_value(dict(sorted(arguments.items()))) if row.body == "gemma" else "",
        "command": _command(call, tools) if row.body == "block" else "",
        "index": str(index),
        "id_json": to_json(call.call_id or f"call{index:05}"),
    }


def _command(call: ToolCall, tools: KnownTools) -> str:
    """Returns the text of the block of bash that makes a call."""
    tool, argument = tools.shell() or ("", "")
    is_command = call.name == tool and [*call.arguments] == [argument]
    block = call.arguments[argument] if is_command else None
    if call.name in tools.nullary and not call.arguments:
        block = call.name
    if not isinstance(block, str) or "\n```" in f"\n{block}":
        raise InvalidArgumentError(
            "bash_block carries calls of the shell and of tools without arguments, and no line "
            f"that begins with ```, got one of {call.name!r}"
        )
    return block


def example(row: Format) -> str:
    """Returns an example of a call in one line, for errors."""
    if row.body in ("block", "template"):
        return "one block of bash: a line ```bash, a line such as ls -la, and a line ```"
    written = render_calls([ToolCall("TOOL", {"NAME": "value"}, "abcdefghi")], row.name)
    return " ".join(re.sub(r"\s*\n(?=<)|(?<=>)\s*\n", "", written).splitlines())


def check_format(
    tool_format: str, schemas: Sequence[Schema], tokenizer: "Tokenizer | None" = None
) -> tuple[str, ...]:
    """Returns the names of the tools that a format can call.

    Raises:
        UnknownNameError: There is no such format.
        InvalidArgumentError: The format can call none of the tools, or is ``template`` and the
            tokenizer has none.
        MissingDependencyError: The format is ``template``, and transformers is too old.
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


def tells_format(tool_format: str) -> bool:
    """Whether the system prompt explains the format: not where a server or a chat template does."""
    return row_of(tool_format).name not in ("openai", "template") and tool_format != "auto"


def format_instructions(tool_format: str, schemas: Sequence[Schema]) -> str:
    """Returns the tools and how to call them, with an example: a part of a system prompt.

    Args:
        tool_format: One of `TOOL_FORMATS`, except ``template``.
        schemas: The tools, as OpenAI function schemas. Those that the format cannot call are not
            displayed.

    Raises:
        UnknownNameError: There is no such format.
        InvalidArgumentError: The format can call none of the tools.
    """
    row, names = row_of(tool_format), check_format(tool_format, schemas)
    listed = [schema for schema in schemas if schema["function"]["name"] in names]
    function = listed[0]["function"]
    properties = function["parameters"].get("properties", {})
    required = function["parameters"].get("required", ())
    call = ToolCall(function["name"], {key: _sample(key, properties[key]) for key in required})
    return _TEXT.format(
        schemas="\n".join(json.dumps(schema, ensure_ascii=False) for schema in listed),
        explained=_EXPLAINED.get(row.body, _EXPLAINED_ELSE),
        example=render_calls([call], tool_format, schemas),
    )


def with_instructions(prompt: str, tool_format: str, schemas: Sequence[Schema]) -> str:
    """Returns a system prompt, with the instructions behind it where it explains the format."""
    if not tells_format(tool_format):
        return prompt
    return f"{prompt.rstrip()}\n\n{format_instructions(tool_format, schemas)}\n"


def _sample(key: str, schema: Schema) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kinds = kinds_of(schema) or {"string"}
    if "string" in kinds:
        return "ls -la" if key in ("cmd", "command") else "…"
    return next((_SAMPLES[kind] for kind in kinds if kind in _SAMPLES), {})
