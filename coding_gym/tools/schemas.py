"""Builds and reads OpenAI function schemas of tools."""

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

SHELLS = ("shell", "bash", "run_command", "execute_bash")
"""Names of tools that run a shell command, in this and other projects; the first is preferred."""

COMMANDS = ("cmd", "command")
"""Names of the argument that contains the command of a shell tool."""

_NAMESPACES = ("functions.", "default_api.")


def function(
    name: str,
    description: str,
    parameters: Mapping[str, str | Mapping[str, Any]],
    optional: Sequence[str] = (),
) -> dict[str, Any]:
    """Returns an OpenAI function schema.

    Args:
        name: The tool's name.
        description: A sentence or two for the policy.
        parameters: Each parameter's JSON schema, or the description of a string parameter.
        optional: Names of the optional parameters.

    >>> schema = function("cd", "Change the folder.", {"path": "Where to"})
    >>> schema["function"]["parameters"]["required"]
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


def integer(description: str) -> dict[str, Any]:
    """Returns the JSON schema of an integer."""
    return {"type": "integer", "description": description}


def boolean(description: str) -> dict[str, Any]:
    """Returns the JSON schema of a boolean."""
    return {"type": "boolean", "description": description}


def array(description: str, items: str) -> dict[str, Any]:
    """Returns the JSON schema of a list of one item type."""
    return {"type": "array", "description": description, "items": {"type": items}}


def kinds_of(schema: Any) -> set[str]:
    """Returns the JSON types that a schema allows; empty if it has no type or is not an object."""
    if not isinstance(schema, Mapping):  # JSON Schema has boolean schemas
        return set()
    kind = schema.get("type")
    kinds = {name for name in (kind, *_list(kind)) if isinstance(name, str)}
    return kinds.union(*map(kinds_of, (*_list(schema.get("anyOf")), *_list(schema.get("oneOf")))))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class KnownTools:
    """Finds the tools of a policy by the names that models write.

    Args:
        schemas: OpenAI function schemas; those of a harness can have malformed parameters.
    """

    def __init__(self, schemas: Sequence[Schema] = ()) -> None:
        functions = [schema["function"] for schema in schemas]
        self._parameters: dict[str, Schema] = {
            function["name"]: function.get("parameters") or {} for function in functions
        }
        self.names = tuple(self._parameters)

    @property
    def nullary(self) -> tuple[str, ...]:
        """The names of tools without required arguments."""
        return tuple(name for name in self.names if not self._parameters[name].get("required"))

    def resolve(self, name: str) -> str:
        """Returns a tool's name without the prefixes and suffixes that models add.

        Examples: ``functions.shell:0``, ``default_api.shell``, ``shell<|channel|>commentary``.
        """
        if name in self._parameters:
            return name
        short_name = name.partition("<|")[0].strip()
        for namespace in _NAMESPACES:
            short_name = short_name.removeprefix(namespace)
        head, _, number = short_name.rpartition(":")
        return head if head and number.isdecimal() else short_name or name

    def properties(self, tool: str) -> Mapping[str, Schema]:
        """Returns the schemas of a tool's arguments by name; empty for unknown tools."""
        properties = self._parameters.get(tool, {}).get("properties")
        return properties if isinstance(properties, Mapping) else {}

    def shell(self) -> tuple[str, str] | None:
        """Returns the names of the shell tool and its argument; None if there is no shell tool."""
        required = {name: self._parameters[name].get("required", ()) for name in self.names}
        for name in (*SHELLS, *self.names):
            if len(required.get(name, ())) == 1 and required[name][0] in COMMANDS:
                return name, required[name][0]
        return None
