"""OpenAI function schemas: whether they are well formed, what fits them, and plain arguments."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from coding_gym.testing.claims import expect

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raises AssertionError unless a schema is an OpenAI function's, with all described."""
    expect("the schema as JSON", json.loads(json.dumps(schema)), schema)
    expect("type", schema.get("type"), "function")
    spec = schema["function"]
    if not _NAME.fullmatch(spec["name"]):
        raise AssertionError(f"a tool's name has letters, digits, _ and -, got {spec['name']!r}")
    expect(f"description of {spec['name']}", bool(spec.get("description", "").strip()), True)
    parameters = spec["parameters"]
    expect(f"type of {spec['name']}'s parameters", parameters.get("type"), "object")
    properties = parameters.get("properties", {})
    unknown = set(parameters.get("required", ())) - set(properties)
    expect(f"required but no properties of {spec['name']}", unknown, set())
    for name, prop in properties.items():
        what = f"{name} of {spec['name']}"
        expect(f"type of {what} is known", prop.get("type") in _TYPES, True)
        expect(f"{what} has a description", bool(prop.get("description", "").strip()), True)
        if prop["type"] == "array":
            expect(f"items of {what}", prop.get("items", {}).get("type") in _TYPES, True)


def misfit(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Returns why arguments do not fit a function's schema, or "" where they do."""
    parameters = schema["function"]["parameters"]
    properties = parameters.get("properties", {})
    for name in parameters.get("required", ()):
        if name not in arguments:
            return f"{name} is missing"
    for name, value in arguments.items():
        if name not in properties:
            return f"there is no {name}"
        if why := _misfit_value(value, properties[name]):
            return f"{name} {why}"
    return ""


def _misfit_value(value: Any, prop: Mapping[str, Any]) -> str:
    if not _TYPES[prop["type"]](value):
        return f"is to be of type {prop['type']}, got {value!r:.80}"
    if "enum" in prop and value not in prop["enum"]:
        return f"is to be one of {prop['enum']}, got {value!r:.80}"
    if value < prop.get("minimum", value) if _is_number(value) else False:
        return f"is below {prop['minimum']}, got {value}"
    if value > prop.get("maximum", value) if _is_number(value) else False:
        return f"is above {prop['maximum']}, got {value}"
    if isinstance(value, list):
        return next((why for item in value if (why := _misfit_value(item, prop["items"]))), "")
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def plain_arguments(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns arguments that fit a function's schema: one set for each word of an enumeration."""
    properties = schema["function"]["parameters"].get("properties", {})
    plain = {name: _plain(prop) for name, prop in properties.items()}
    words = [(name, prop["enum"]) for name, prop in properties.items() if "enum" in prop]
    return [plain | {name: word} for name, enum in words for word in enum] or [plain]


def _plain(prop: Mapping[str, Any]) -> Any:
    if "enum" in prop:
        return prop["enum"][0]
    values = {"string": "a", "boolean": False, "array": [], "object": {}}
    return values.get(prop["type"], prop.get("minimum", 1))
