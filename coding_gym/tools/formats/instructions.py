"""What a model is told of a format, where its chat template has no place for tools."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.formats.catalog import AUTO, FORMATS, split_format
from coding_gym.tools.formats.format import Format
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.rendering import render_calls
from coding_gym.tools.patch_envelope import BEGIN, END
from coding_gym.tools.schemas import Schema

_TEXT = """\
Your chat format has a way of its own to call tools. These are the tools, each described by its \
JSON schema:
<tools>
{schemas}
</tools>
{explained} For example:
{example}"""
_PATCH = f"{BEGIN}\n*** Update File: src/parser.py\n@@\n-    return 1\n+    return 2\n{END}"
_SAMPLES: Mapping[str, Any] = {
    "string": "…",
    "integer": 1,
    "number": 0.5,
    "boolean": True,
    "array": [],
    "object": {},
    "cmd": "ls -la",
    "command": "ls -la",
}


def format_instructions(tool_format: str, schemas: Sequence[Schema]) -> str:
    """Returns the tools and how to call them, with an example: a part of a system prompt.

    Args:
        tool_format: One of `TOOL_FORMATS`; ``auto`` is explained as ``json``.
        schemas: The tools, as OpenAI function schemas. Those that the format cannot call are left
            out.

    Raises:
        UnknownNameError: There is no such format.
        InvalidArgumentError: The format can call none of the tools.
    """
    chosen, callable_tools = _checked(tool_format, schemas)
    shown = [schema for schema in schemas if schema["function"]["name"] in callable_tools]
    lines = "\n".join(json.dumps(schema, ensure_ascii=False) for schema in shown)
    example = render_calls([_example(chosen, shown)], chosen.name, schemas)
    return _TEXT.format(schemas=lines, explained=chosen.explained, example=example)


def check_format(tool_format: str, schemas: Sequence[Schema]) -> None:
    """Raises what `format_instructions` does, for a caller that only wants to know."""
    _checked(tool_format, schemas)


def tells_format(tool_format: str) -> bool:
    """Whether a policy is told the format in its system prompt.

    Not so for ``openai``, where a server tells it, and not for ``auto``, which takes what comes.
    """
    return split_format(tool_format)[0] not in (AUTO, "openai")


def with_instructions(prompt: str, tool_format: str, schemas: Sequence[Schema]) -> str:
    """Returns a system prompt, with the instructions behind it where a policy is told them."""
    if not tells_format(tool_format):
        return prompt
    return f"{prompt.rstrip()}\n\n{format_instructions(tool_format, schemas)}\n"


def _checked(tool_format: str, schemas: Sequence[Schema]) -> tuple[Format, tuple[str, ...]]:
    name, _ = split_format(tool_format)
    chosen = FORMATS["json" if name == AUTO else name]
    callable_tools = chosen.callable(KnownTools(tuple(schemas)))
    if not callable_tools:
        names = ", ".join(KnownTools(tuple(schemas)).names)
        raise InvalidArgumentError(
            f"tool_format {tool_format!r} can call none of these tools: {names}; use another "
            "toolset, or a format that calls any tool, such as 'hermes'"
        )
    return chosen, callable_tools


def _example(chosen: Format, shown: Sequence[Schema]) -> ToolCall:
    function = shown[0]["function"]
    properties = function["parameters"].get("properties", {})
    required = function["parameters"].get("required", ())
    if chosen.name == "apply_patch":
        return ToolCall(function["name"], dict.fromkeys(required, _PATCH))
    return ToolCall(function["name"], {key: _sample(key, properties[key]) for key in required})


def _sample(key: str, schema: Schema) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    return _SAMPLES[key if key in _SAMPLES and kind == "string" else kind]
