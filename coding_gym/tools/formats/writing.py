"""Tool calls to text, and the explanation of a format in a system prompt."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.formats.format import Format, KnownTools
from coding_gym.tools.formats.parsing import AUTO, FORMATS, STRICT, parse_action, split_format
from coding_gym.tools.patches import BEGIN, END
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


def render_calls(
    calls: Sequence[ToolCall],
    tool_format: str = "json",
    schemas: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Writes calls so that `parse_action` reads the same calls back.

    An empty ``call_id`` comes back as ``call_0``, ``call_1``, …, and so does every id in formats
    without ids. Two formats have ids of a form of their own, and write others as one of these:
    ``kimi_k2`` (``functions.shell:0``) and ``mistral_v11`` (nine letters and digits). ``auto``
    writes ``json``.

    Args:
        calls: The calls.
        tool_format: How to write them; ``[strict]`` changes nothing here.
        schemas: The tools, as OpenAI function schemas. Formats that are not JSON need them.

    Raises:
        UnknownNameError: There is no such format.
        InvalidArgumentError: An argument is not a JSON value, or this format cannot carry a call:
            what it wrote would be read back as something else.
    """
    chosen = FORMATS[split_format(tool_format)[0]]
    try:
        text = chosen.write(calls, KnownTools(schemas))
    except InvalidArgumentError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"arguments must be JSON values: {error}") from error
    if not chosen.is_json:
        _check_read_back(calls, text, chosen.name, schemas)
    return text


def _check_read_back(
    calls: Sequence[ToolCall], text: str, name: str, schemas: Sequence[Mapping[str, Any]]
) -> None:
    parsed = parse_action(text, name + STRICT, schemas)
    is_whole = not parsed.text and len(parsed.calls) == len(calls)
    for i, call in enumerate(calls):
        read = parsed.calls[i] if i < len(parsed.calls) else ToolCall("")
        is_same = call.name == read.name and not read.error
        if is_whole and is_same and _canonical(call.arguments) == _canonical(read.arguments):
            continue
        raise InvalidArgumentError(
            f"{name} cannot carry {_what(call, read)}, which would be read back as something "
            "else; write it in a format of JSON, such as 'hermes'"
        )


def _canonical(value: Any) -> str:
    """Returns a text that tells 1 from 1.0 and from True, and does not depend on keys' order."""
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, sort_keys=True)


def _what(call: ToolCall, read: ToolCall) -> str:
    """Returns which part of a call is the one that is lost, where that can be told."""
    for key, value in call.arguments.items():
        is_there = read.name == call.name and key in read.arguments
        if is_there and _canonical(read.arguments[key]) != _canonical(value):
            return f"{key}={value!r:.60} of {call.name!r}"
    return f"this call of {call.name!r}"


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
    chosen, names = FORMATS[split_format(tool_format)[0]], check_format(tool_format, schemas)
    callable_schemas = [schema for schema in schemas if schema["function"]["name"] in names]
    lines = "\n".join(json.dumps(schema, ensure_ascii=False) for schema in callable_schemas)
    example = render_calls([_example(chosen, callable_schemas)], chosen.name, schemas)
    return _TEXT.format(schemas=lines, explained=chosen.explained, example=example)


def check_format(tool_format: str, schemas: Sequence[Schema]) -> tuple[str, ...]:
    """Returns the names of the tools that a format can call.

    Raises:
        UnknownNameError: There is no such format.
        InvalidArgumentError: The format can call none of the tools.
    """
    tools = KnownTools(schemas)
    names = FORMATS[split_format(tool_format)[0]].callable(tools)
    if not names:
        raise InvalidArgumentError(
            f"tool_format {tool_format!r} can call none of these tools: {', '.join(tools.names)}; "
            "use another toolset, or a format that calls any tool, such as 'hermes'"
        )
    return names


def tells_format(tool_format: str) -> bool:
    """Whether the system prompt explains the format: not where a server does, nor for ``auto``."""
    name, _ = split_format(tool_format)
    return name != AUTO and not FORMATS[name].is_served


def with_instructions(prompt: str, tool_format: str, schemas: Sequence[Schema]) -> str:
    """Returns a system prompt, with the instructions behind it where it explains the format."""
    if not tells_format(tool_format):
        return prompt
    return f"{prompt.rstrip()}\n\n{format_instructions(tool_format, schemas)}\n"


def _example(chosen: Format, callable_schemas: Sequence[Schema]) -> ToolCall:
    function = callable_schemas[0]["function"]
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
