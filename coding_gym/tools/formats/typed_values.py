"""Values of arguments as plain text, which only the tool's schema gives a type."""

from collections.abc import Mapping
from typing import Any

from coding_gym.tools.formats.objects import to_json
from coding_gym.tools.formats.parsed import FormatError
from coding_gym.tools.formats.reading import decode_whole

_TRUTH = {"true": True, "false": False}


def typed(text: str, schema: Mapping[str, Any]) -> Any:
    """Returns the value that ``text`` is of an argument with this schema.

    Where strings are allowed, or nothing is known, it is the text itself, exactly. Otherwise it is
    what JSON makes of it, where that has the right type; else the text again, for the tool to
    answer in its own words.
    """
    kinds = _kinds(schema)
    if not kinds or "string" in kinds:
        return text
    plain = text.strip()
    if "boolean" in kinds and plain.lower() in _TRUTH:
        return _TRUTH[plain.lower()]
    try:
        value = decode_whole(plain)
    except FormatError:
        return text
    return value if kinds & _kinds_of(value) else text


def untyped(value: Any) -> str:
    """Returns a value as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else to_json(value)


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    """Returns the JSON types that a schema allows; empty where it does not say."""
    kind = schema.get("type", ())
    kinds = {kind} if isinstance(kind, str) else set(kind)
    for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        kinds |= _kinds(choice)
    return kinds


def _kinds_of(value: Any) -> set[str]:
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int):
        return {"integer", "number"}
    names = {float: "number", list: "array", dict: "object", type(None): "null"}
    return {names.get(type(value), "string")}
