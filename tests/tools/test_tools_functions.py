import inspect
from typing import Any

import pytest

from coding_gym.calls import ToolCall
from coding_gym.tools.functions import function_from_schema
from coding_gym.tools.schemas import argument_errors, array, function, integer

PARAMETERS: dict[str, dict[str, Any]] = {
    "text": {"type": "string", "description": "A text: with a colon,\n  and a line end"},
    "count": {"type": "integer", "description": "A number", "default": 3},
    "ratio": {"type": "number", "description": "Another number"},
    "sure": {"type": "boolean", "description": "Yes or no"},
    "mode": {"type": "string", "enum": ["fast", "slow"], "description": "How"},
    "names": {"type": "array", "items": {"type": "string"}, "description": "Some names"},
    "rest": {"type": "object", "description": "Whatever else"},
}


def schema() -> dict[str, Any]:
    function = {
        "name": "look",
        "description": "Looks.",
        "parameters": {"type": "object", "properties": PARAMETERS, "required": ["text", "mode"]},
    }
    return {"type": "function", "function": function}


def answer(call: ToolCall) -> str:
    return f"{call.name} {dict(call.arguments)}"


def test_a_method_is_bound_to_its_instance() -> None:
    class Owner:
        look = function_from_schema(
            schema(), lambda self, call: f"{type(self).__name__} {call.name}", is_method=True
        )

    assert Owner().look(self="mine", text="a") == "Owner look"
    assert list(inspect.signature(Owner().look).parameters) == list(PARAMETERS)
    assert [n for n, _ in inspect.getmembers(Owner, inspect.isfunction)] == ["look"]


@pytest.mark.slow
def test_transformers_reads_every_kind_of_parameter() -> None:
    transformers = pytest.importorskip("transformers")
    read = transformers.utils.get_json_schema(function_from_schema(schema(), answer))
    expected = schema()
    expected["function"]["parameters"]["properties"] = {
        name: {key: value for key, value in parameter.items() if key != "default"}
        for name, parameter in PARAMETERS.items()
    }
    text = expected["function"]["parameters"]["properties"]["text"]
    text["description"] = "A text: with a colon, and a line end"
    assert read == expected


def test_arguments_are_checked_against_a_schema() -> None:
    optional = {"depth": integer("How deep", minimum=1), "names": array("Which", "string")}
    schema = function("look", "Looks.", optional=tuple(optional), path="Where", **optional)
    good = {"path": "src", "depth": 1, "names": ["a"]}
    assert argument_errors(schema, good) == []
    for wrong in ({"path": 3}, {"depth": 0}, {"depth": True}, {"names": ["a", 2]}, {"size": 1}):
        assert len(argument_errors(schema, good | wrong)) == 1, wrong
    assert len(argument_errors(schema, {})) == 1
