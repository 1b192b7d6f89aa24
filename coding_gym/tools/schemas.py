"""Tools described as OpenAI function schemas."""

from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]


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
        description: What it does, in a sentence or two.
        optional: Names of the parameters that may be left out.
        parameters: What each parameter is: its description, where it is a string, else its JSON
            schema.

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
