import json
from copy import deepcopy
from typing import Any

import pytest

from coding_gym.calls import ToolCall
from coding_gym.tools import get_toolset, toolset_names
from coding_gym.tools.emitting import as_functions, as_hugging_face, as_mcp, as_openai


def schemas_of(name: str) -> tuple[Any, ...]:
    return get_toolset(name).schemas


def name_of(call: ToolCall) -> str:
    return call.name


def test_every_form_has_every_tool_with_its_parameters() -> None:
    for name in toolset_names():
        schemas = schemas_of(name)
        functions = [schema["function"] for schema in schemas]
        assert as_openai(schemas) == list(schemas), name
        assert as_mcp(schemas) == [
            {
                "name": function["name"],
                "description": function["description"],
                "inputSchema": function["parameters"],
            }
            for function in functions
        ], name
        for tool, function in zip(as_hugging_face(schemas), functions, strict=True):
            assert tool["function"].keys() == function.keys()
            assert tool["function"]["parameters"].get("required") != []
        assert [make() for make in as_functions(schemas, name_of)] == [
            f["name"] for f in functions
        ], name
        json.dumps([as_openai(schemas), as_hugging_face(schemas), as_mcp(schemas)])


def test_what_is_emitted_may_be_changed() -> None:
    schemas = schemas_of("nano")
    before = deepcopy(schemas)
    for emit in (as_openai, as_hugging_face, as_mcp):
        for tool in emit(schemas):
            parameters = tool.get("inputSchema") or tool["function"]["parameters"]
            parameters["properties"].clear()
    assert schemas == before


def test_mcp_gives_a_schema_of_an_object_to_a_tool_without_parameters() -> None:
    (tool,) = as_mcp([{"type": "function", "function": {"name": "go"}}])
    assert tool == {
        "name": "go",
        "description": "",
        "inputSchema": {"type": "object", "properties": {}},
    }


def test_transformers_reads_from_the_functions_what_its_own_form_says() -> None:
    for name in toolset_names():
        transformers = pytest.importorskip("transformers")
        schemas = schemas_of(name)
        read = [transformers.utils.get_json_schema(f) for f in as_functions(schemas, name_of)]
        emitted = as_hugging_face(schemas)
        for tool in emitted:
            for schema in tool["function"]["parameters"]["properties"].values():
                schema.pop("minimum", None)
                schema.pop("maximum", None)
        assert read == emitted, name
