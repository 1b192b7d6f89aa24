"""Converts a toolset's schemas to methods, for trainers that build schemas from functions.

A trainer builds the OpenAI schema of a tool from a function's name, type hints and docstring in
Google's style. From a method of this module the trainer builds a schema equal to the original.
"""

import inspect
from collections.abc import Callable, Mapping
from types import GenericAlias
from typing import Any, Literal

from coding_gym.calls import ToolCall
from coding_gym.tools.schemas import JSON_TYPES


def method_from_schema(
    schema: Mapping[str, Any], call: Callable[[Any, ToolCall], str]
) -> Callable[..., str]:
    """Returns a method that takes a tool's arguments by name.

    The method does not check the arguments; the toolset refuses invalid arguments.

    Args:
        schema: An OpenAI function schema, as in `Toolset.schemas`.
        call: Takes the instance and a `ToolCall`, runs the call and returns its result.

    Raises:
        ValueError: The name of a parameter is not a Python identifier.
    """
    spec = schema["function"]
    name = spec["name"]
    properties: Mapping[str, Mapping[str, Any]] = spec["parameters"].get("properties", {})
    required = spec["parameters"].get("required", ())

    def function(instance: Any, /, **arguments: Any) -> str:
        return call(instance, ToolCall(name, arguments))

    hints = {key: _hint(value) for key, value in properties.items()}
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    parameters += [
        inspect.Parameter(
            key,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hint,
            default=inspect.Parameter.empty if key in required else properties[key].get("default"),
        )
        for key, hint in hints.items()
    ]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _docstring(spec.get("description", ""), properties)
    # No return hint: it would become part of the schema.
    function.__annotations__ = hints
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return function


def _hint(schema: Mapping[str, Any]) -> Any:
    """Returns the type hint of a parameter; `Any` if Python has no equivalent."""
    kind = schema.get("type")
    if schema.get("enum"):
        return Literal[tuple(schema["enum"])]
    if not isinstance(kind, str) or kind not in JSON_TYPES:
        return Any
    if kind == "array" and "items" in schema:
        return GenericAlias(list, _hint(schema["items"]))
    return JSON_TYPES[kind]


def _docstring(description: str, properties: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [_one_line(description)]
    if properties:
        lines += ["", "Args:"]
    lines += [
        f"    {name}: {_one_line(value.get('description', ''))}"
        for name, value in properties.items()
    ]
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())
