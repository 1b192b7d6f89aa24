"""Tool calls as JSON objects, in the two shapes in which they are written."""

import json
from collections.abc import Sequence
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.parsed import FormatError
from coding_gym.tools.formats.reading import decode_whole

_KEYS = frozenset({"name", "id", "type", "index"})


def is_openai_call(value: Any) -> bool:
    """Whether a value has OpenAI's shape: name and arguments inside ``function``."""
    return isinstance(value, dict) and isinstance(value.get("function"), dict)


def is_flat_call(value: Any) -> bool:
    """Whether a value is a call in the flat shape, and not something else that has a name."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return False
    return "arguments" in value or "parameters" in value or value.keys() <= _KEYS


def read_calls(values: Sequence[Any]) -> tuple[ToolCall, ...]:
    """Returns the calls in JSON values, each of which is a call or a list of calls.

    Raises:
        FormatError: A value is neither.
    """
    return tuple(_read_call(item) for item in flattened(values))


def flattened(values: Sequence[Any]) -> list[Any]:
    """Returns the values, and the items of those that are lists instead of these."""
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def are_calls(values: Sequence[Any]) -> bool:
    """Whether every value is a call, or a list of calls."""
    return all(is_flat_call(item) or is_openai_call(item) for item in flattened(values))


def check_exact(items: Sequence[Any], key: str = "arguments") -> None:
    """Raises FormatError unless each item is a call as `flat_object` writes it."""
    for item in items:
        is_object = isinstance(item, dict) and {"name", key} <= item.keys() <= {"id", "name", key}
        if not is_object or not isinstance(item[key], dict):
            raise FormatError(
                f'an object with "name" and an object "{key}", and no more than an "id" beside '
                f"them, is needed, got {_shape(item)}"
            )


def _read_call(item: Any) -> ToolCall:
    if not (is_openai_call(item) or is_flat_call(item)):
        raise FormatError(f'an object with "name" and "arguments" is needed, got {_shape(item)}')
    inner = item["function"] if is_openai_call(item) else item
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        raise FormatError('"name" must be the name of a tool')
    call_id = item.get("id")
    value = inner.get("arguments", inner.get("parameters"))
    arguments, error = _read_arguments(value)
    call_id = call_id if isinstance(call_id, str) else ""
    text = value if isinstance(value, str) else ""
    return ToolCall(name, arguments, call_id, error, arguments_text=text)


def _read_arguments(value: Any) -> tuple[dict[str, Any], str]:
    """Returns the arguments, or why they cannot be read.

    Arguments in a string are what the model wrote inside an envelope that a server made. They are
    never repaired: a command that was cut off must not run as if it were whole.
    """
    if isinstance(value, str) and value.strip():
        try:
            value = decode_whole(value.strip())
        except FormatError as error:
            return {}, str(error)
    if value is None or value == "":
        return {}, ""
    if not isinstance(value, dict):
        return {}, f"expected an object, got {_shape(value)}"
    return value, ""


def _shape(value: Any) -> str:
    if isinstance(value, dict):
        keys = ", ".join(str(key)[:20] for key in list(value)[:5])
        return f"an object with {keys}" if keys else "an empty object"
    names = {str: "a string", list: "a list", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def flat_object(call: ToolCall, index: int, key: str = "arguments") -> dict[str, Any]:
    """Returns a call in the flat shape; its id only where it is not the one given by position."""
    data: dict[str, Any] = {"name": call.name, key: dict(call.arguments)}
    return data if call.call_id in ("", f"call_{index}") else {"id": call.call_id} | data


def to_json(value: Any) -> str:
    """Returns the JSON of a value, other alphabets as themselves."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
