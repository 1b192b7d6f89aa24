"""Tools described as OpenAI function schemas, and arguments checked against them."""

from collections.abc import Mapping, Sequence
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

    Arguments that the schema does not name are errors.

    >>> argument_errors(function("cd", "Change the folder.", path="Where to"), {"path": 3})
    ["3 is not of type 'string'"]
    """
    from jsonschema import Draft202012Validator  # takes long to import

    whole = {"additionalProperties": False, "type": "object", **schema["function"]["parameters"]}
    return [error.message for error in Draft202012Validator(whole).iter_errors(dict(arguments))]
