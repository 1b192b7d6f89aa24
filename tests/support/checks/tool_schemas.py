"""OpenAI function schemas: whether they are well formed, and plain arguments that fit them."""

import json
import re
from collections.abc import Mapping
from typing import Any

from checks.claims import expect
from coding_gym.tools.schemas import JSON_TYPES

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raises AssertionError unless a schema is an OpenAI function's, with all described."""
    expect("the schema as JSON", json.loads(json.dumps(schema)), schema)
    expect("type", schema.get("type"), "function")
    spec = _part(schema, "function")
    if not _NAME.fullmatch(str(spec.get("name", ""))):
        raise AssertionError(
            f"a tool's name has letters, digits, _ and -, got {spec.get('name')!r}"
        )
    expect(f"description of {spec['name']}", bool(spec.get("description", "").strip()), True)
    parameters = _part(spec, "parameters")
    expect(f"type of {spec['name']}'s parameters", parameters.get("type"), "object")
    properties = parameters.get("properties", {})
    unknown = set(parameters.get("required", ())) - set(properties)
    expect(f"required but no properties of {spec['name']}", unknown, set())
    for name, prop in properties.items():
        what = f"{name} of {spec['name']}"
        expect(f"type of {what} is known", prop.get("type") in JSON_TYPES, True)
        expect(f"{what} has a description", bool(prop.get("description", "").strip()), True)
        if prop["type"] == "array":
            expect(f"items of {what}", prop.get("items", {}).get("type") in JSON_TYPES, True)


def _part(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = schema.get(name)
    if not isinstance(part, Mapping):
        raise AssertionError(f"wanted an object as {name}, got {part!r:.80}")
    return part


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
