import inspect
from copy import deepcopy
from typing import Any

import pytest

from coding_gym.calls import ToolCall
from coding_gym.tools.functions import method_from_schema
from coding_gym.tools.schemas import function

PARAMETERS: dict[str, dict[str, Any]] = {
    "text": {"type": "string", "description": "A text: with a colon,\n  and a line end"},
    "count": {"type": "integer", "description": "A number", "default": 3},
    "ratio": {"type": "number", "description": "Another number"},
    "sure": {"type": "boolean", "description": "Yes or no"},
    "mode": {"type": "string", "enum": ["fast", "slow"], "description": "How"},
    "names": {"type": "array", "items": {"type": "string"}, "description": "Some names"},
    "rest": {"type": "object", "description": "Whatever else"},
}


SCHEMA = function("look", "Looks.", PARAMETERS, [*{*PARAMETERS} - {"text", "mode"}])


def reply(owner: Any, call: ToolCall) -> str:
    return f"{type(owner).__name__} {call.name} {dict(call.arguments)}"


def test_a_method_is_bound_and_does_not_check_arguments() -> None:
    class Owner:
        look = method_from_schema(SCHEMA, reply)

    assert Owner().look(self="mine", text="a") == "Owner look {'self': 'mine', 'text': 'a'}"
    assert list(inspect.signature(Owner().look).parameters) == list(PARAMETERS)
    assert [n for n, _ in inspect.getmembers(Owner, inspect.isfunction)] == ["look"]


@pytest.mark.slow
def test_transformers_reads_every_kind_of_parameter() -> None:
    transformers = pytest.importorskip("transformers")
    schema = transformers.utils.get_json_schema(method_from_schema(SCHEMA, reply))
    expected = deepcopy(SCHEMA)
    parameters = expected["function"]["parameters"]["properties"]
    del parameters["count"]["default"]
    parameters["text"]["description"] = "A text: with a colon, and a line end"
    assert schema == expected
