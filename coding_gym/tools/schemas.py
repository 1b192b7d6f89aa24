"""Tools described as OpenAI function schemas, and arguments checked against them."""

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

Schema = Mapping[str, Any]

JSON_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}
"""The Python type of each JSON type that a parameter can have."""

_ALSO: Mapping[str, tuple[type, ...]] = {
    "number": (int,),
    "array": (tuple,),
    "object": (Mapping,),
    "null": (NoneType,),
}
_KNOWN = {*JSON_TYPES, *_ALSO}


def function(
    name: str,
    description: str,
    /,
    *,
    optional: Sequence[str] = (),
    **parameters: str | Mapping[str, Any],
) -> dict[str, Any]:
    """Returns an OpenAI function schema.

    Args:
        name: The tool's name.
        description: A sentence or two for the policy.
        optional: Names of the parameters that may be left out.
        parameters: By name, a JSON schema, or the description of a string.

    >>> function("cd", "Change the folder.", path="Where to")["function"]["parameters"]["required"]
    ['path']
    """
    properties = {
        key: {"type": "string", "description": value} if isinstance(value, str) else dict(value)
        for key, value in parameters.items()
    }
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": [key for key in properties if key not in optional],
            },
        },
    }


def integer(description: str, **rest: Any) -> dict[str, Any]:
    """Returns the JSON schema of a whole number."""
    return {"type": "integer", "description": description, **rest}


def boolean(description: str, **rest: Any) -> dict[str, Any]:
    """Returns the JSON schema of a truth value."""
    return {"type": "boolean", "description": description, **rest}


def array(description: str, items: str, **rest: Any) -> dict[str, Any]:
    """Returns the JSON schema of a list whose items have one type."""
    return {"type": "array", "description": description, "items": {"type": items}, **rest}


def argument_errors(schema: Schema, arguments: Mapping[str, Any]) -> list[str]:
    """Returns why arguments do not fit an OpenAI function schema; an empty list where they do.

    Required names, unknown names, types, enumerations, bounds, items and properties are checked.

    >>> argument_errors(function("cd", "Change the folder.", path="Where to"), {"path": 3})
    ['path must be of type string, got 3']
    """
    parameters = schema["function"].get("parameters", {})
    properties = parameters.get("properties", {})
    unknown = [f"there is no {name}" for name in arguments if name not in properties]
    return unknown + _errors("", {"type": "object"} | dict(parameters), arguments)


def _errors(name: str, schema: Schema, value: Any) -> list[str]:
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if kinds and not any(_is_a(value, kind) for kind in kinds):
        return [f"{name} must be of type {' or '.join(kinds)}, got {value!r:.80}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{name} must be one of {schema['enum']}, got {value!r:.80}"]
    if isinstance(value, int | float):
        least, most = schema.get("minimum", value), schema.get("maximum", value)
        return [] if least <= value <= most else [f"{name} is out of its bounds, got {value}"]
    if isinstance(value, list | tuple):
        return [why for item in value for why in _errors(name, schema.get("items", {}), item)]
    if not isinstance(value, Mapping):
        return []
    inner: Mapping[str, Schema] = schema.get("properties", {})
    missing = [f"{key} is missing" for key in schema.get("required", ()) if key not in value]
    known = [(key, item) for key, item in value.items() if key in inner]
    return missing + [why for key, item in known for why in _errors(key, inner[key], item)]


def _is_a(value: Any, kind: str) -> bool:
    if isinstance(value, bool):  # which Python counts as a number
        return kind == "boolean"
    known = (JSON_TYPES[kind],) if kind in JSON_TYPES else ()
    return isinstance(value, (*known, *_ALSO.get(kind, ()))) or kind not in _KNOWN
