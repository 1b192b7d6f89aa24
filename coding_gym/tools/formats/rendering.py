"""Tool calls to text."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.formats.catalog import AUTO, FORMATS, STRICT, split_format
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.parsing import parse_action


def render_calls(
    calls: Sequence[ToolCall],
    tool_format: str = "json",
    schemas: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Writes calls so that `parse_action` reads the same calls back.

    An empty ``call_id`` comes back as ``call_0``, ``call_1``, …, and so does every id in formats
    without ids: all that are not JSON. ``auto`` writes ``json``.

    Args:
        calls: The calls.
        tool_format: How to write them; ``[strict]`` changes nothing here.
        schemas: The tools, as OpenAI function schemas. Formats that are not JSON need them.

    Raises:
        UnknownNameError: There is no such format.
        InvalidArgumentError: An argument is not a JSON value, or this format cannot carry a call:
            what it wrote would be read back as something else.
    """
    name, _ = split_format(tool_format)
    chosen = FORMATS["json" if name == AUTO else name]
    try:
        text = chosen.render(calls, KnownTools(tuple(schemas)))
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
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
        read = parsed.calls[i : i + 1]
        if not (is_whole and _is_same(call, read[0])):
            raise InvalidArgumentError(
                f"{name} cannot carry {_what(call, read)}, which would be read back as something "
                "else; write it in a format of JSON, such as 'hermes'"
            )


def _is_same(call: ToolCall, read: ToolCall) -> bool:
    return call.name == read.name and _canonical(call.arguments) == _canonical(read.arguments)


def _canonical(value: Any) -> str:
    """Returns a text that tells 1 from 1.0 and from True, and does not depend on keys' order."""
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, sort_keys=True)


def _what(call: ToolCall, read: Sequence[ToolCall]) -> str:
    """Returns which part of a call is the one that is lost, where that can be told."""
    arguments = read[0].arguments if read and read[0].name == call.name else {}
    for key, value in call.arguments.items():
        if key in arguments and _canonical(arguments[key]) != _canonical(value):
            return f"{key}={value!r:.60} of {call.name!r}"
    return f"this call of {call.name!r}"
