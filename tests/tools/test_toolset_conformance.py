"""The contract of `coding_gym.tools.Toolset`, for every registered toolset."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from episodes import Scene
from jsonschema import Draft202012Validator

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import SandboxSpec, default_interpreter, open_sandbox
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import (
    Tool,
    Toolset,
    get_toolset,
    register_toolset,
    toolset_names,
)
from coding_gym.tools.formats.instructions import system_prompt
from coding_gym.tools.schemas import JSON_TYPES

MAX_RESULT_CHARS = 64_000
SECRET = "the secret outside"  # noqa: S105 - not a real secret
OUTSIDE = "/tmp/outside"
FILES = {
    "README.md": "# A title\n\nThe text of the project.\n",
    "area.py": 'def area(width, height):\n    """Returns an area."""\n    return width + height\n',
    "tests/test_area.py": "from area import area\n\n\ndef test():\n    assert area(2, 3) == 6\n",
}
GARBAGE: tuple[Any, ...] = (
    *(None, True, -1, 10**30, 1.5, "", " ", "\0", "\ud800", "é\r\n\x1b[31m☂", "x" * 300_000),
    *([], ["a", 1], {"a": {}}),
)


@pytest.fixture(params=toolset_names())
def toolset(request: pytest.FixtureRequest) -> Toolset:
    return get_toolset(request.param)


@pytest.fixture
def scene(toolset: Toolset) -> Iterator[Scene]:
    """A small repository, in which ``link`` and ``folder`` lead outside."""
    with open_sandbox(SandboxSpec(python=default_interpreter())) as sandbox:
        for path, text in FILES.items():
            sandbox.write_file(path, text.encode())
        sandbox.write_file(f"{OUTSIDE}/secret", SECRET.encode())
        links = f"ln -s {OUTSIDE}/secret link; ln -s {OUTSIDE} folder; printf '\\0' > data"
        assert sandbox.run(links).ok
        yield Scene(sandbox, toolset=toolset.name)


def outside_state(scene: Scene) -> str:
    """Returns names, sizes, modes, times and contents of files outside the workspace."""
    command = f"cd {OUTSIDE} && find . -exec stat -c '%n %s %a %Y' {{}} + | sort && cat secret"
    return scene.sandbox.run(command).output


def result_of(toolset: Toolset, call: ToolCall, scene: Scene) -> ToolResult:
    """Returns the result of a call; asserts that an episode can use it."""
    result = toolset.execute(call, scene)
    assert type(result) is ToolResult
    assert result.call_id == call.call_id
    assert 0 < len(result.content) <= MAX_RESULT_CHARS
    result.content.encode()  # tokenizers refuse lone surrogates
    return result


def drawn_calls(toolset: Toolset) -> list[ToolCall]:
    """Returns the distinct calls of a random agent."""
    rng = np.random.default_rng(0)
    calls = [toolset.sample_call(rng) for _ in range(300)]
    return list({json.dumps(call.to_json(), sort_keys=True): call for call in calls}.values())


def schemas_of(toolset: Toolset) -> dict[str, Any]:
    return {tool.name: tool.schema for tool in toolset.tools}


def properties_of(schema: Any) -> dict[str, Any]:
    properties: dict[str, Any] = schema["function"]["parameters"].get("properties", {})
    return properties


def is_valid(schema: Any, arguments: Any) -> bool:
    parameters = {"additionalProperties": False, **schema["function"]["parameters"]}
    return bool(Draft202012Validator(parameters).is_valid(arguments))


def valid_arguments(schema: Any) -> list[dict[str, Any]]:
    """Returns sets of arguments that fit a schema, one set for each value of an enumeration."""
    values = {"string": "a", "boolean": False, "array": [], "object": {}}
    valid, enums = {}, []
    for name, spec in properties_of(schema).items():
        enums += [(name, word) for word in spec.get("enum", ())]
        valid[name] = spec.get("enum", [values.get(spec["type"], spec.get("minimum", 1))])[0]
    return [valid | {name: word} for name, word in enums] or [valid]


def test_schemas_are_described_openai_functions(toolset: Toolset) -> None:
    assert len(schemas_of(toolset)) == len(toolset.tools) > 0
    for name, schema in schemas_of(toolset).items():
        assert json.loads(json.dumps(schema)) == schema
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)
        assert schema["function"]["description"].strip()
        for argument in properties_of(schema).values():
            assert argument["type"] in JSON_TYPES
            assert argument.get("description", "").strip() or toolset.name == "compact"
            assert argument["type"] != "array" or argument["items"]["type"] in JSON_TYPES


def test_drawn_calls_fit_schemas_and_follow_the_seed(toolset: Toolset) -> None:
    for call in drawn_calls(toolset):
        assert is_valid(schemas_of(toolset)[call.name], call.arguments)
    assert drawn_calls(toolset) == drawn_calls(toolset)


def test_a_drawn_call_submits(toolset: Toolset, scene: Scene) -> None:
    calls = sorted(drawn_calls(toolset), key=lambda call: "submit" not in str(call).lower())
    assert any(result_of(toolset, call, scene).submitted for call in calls)


def test_invalid_calls_get_a_result(toolset: Toolset, scene: Scene) -> None:
    unknown = ToolCall("no_such_tool", {}, "id")
    unreadable = ToolCall(toolset.tools[0].name, {}, "id", error="Expecting value")
    for call in (unknown, ToolCall("", {}, "id"), ToolCall("x\0☂" * 1000, {"a": 1}), unreadable):
        result = result_of(toolset, call, scene)
        assert (result.ok, result.submitted) == (False, False)
    assert unknown.name in result_of(toolset, unknown, scene).content
    assert unreadable.error in result_of(toolset, unreadable, scene).content


def test_a_missing_argument_is_named(toolset: Toolset, scene: Scene) -> None:
    for tool, schema in schemas_of(toolset).items():
        for name in schema["function"]["parameters"].get("required", ()):
            for valid in valid_arguments(schema):
                del valid[name]
                result = result_of(toolset, ToolCall(tool, valid), scene)
                assert (result.ok, result.submitted) == (False, False), (tool, name)
                assert name in result.content or tool in result.content, (tool, name)


def test_arguments_that_do_not_fit_the_schema_are_refused(toolset: Toolset, scene: Scene) -> None:
    for tool, schema in schemas_of(toolset).items():
        valid = valid_arguments(schema)[0]
        for name, value in product(valid, ("12", True, 1.5, [1], {})):
            arguments = valid | {name: value}
            if not is_valid(schema, arguments):
                assert not result_of(toolset, ToolCall(tool, arguments), scene).ok, (
                    tool,
                    arguments,
                )


def test_random_arguments_never_change_files_outside(toolset: Toolset, scene: Scene) -> None:
    before = outside_state(scene)
    for tool, schema in schemas_of(toolset).items():
        valid = valid_arguments(schema)[0]
        garbage = [{name: value} for name in valid for value in GARBAGE]
        for arguments in (*garbage, {"no_such_argument": 1}, {"\ud800": "\0", "": None}):
            result_of(toolset, ToolCall(tool, valid | arguments, "id"), scene)
    assert outside_state(scene) == before


def test_a_prompt_names_every_argument_of_every_tool(toolset: Toolset) -> None:
    # The compact toolset leaves arguments to the schemas.
    for tool in () if toolset.name == "compact" else toolset.tools:
        for argument in tool.parameters:
            assert f"`{argument}`" in toolset.system_prompt, (tool.name, argument)


def test_a_prompt_explains_whether_the_shell_persists(toolset: Toolset) -> None:
    prompts = [system_prompt(toolset, keeps_shell=keeps) for keeps in (False, True)]
    is_explained = toolset.name != "compact"
    assert ["starts anew" in prompt for prompt in prompts] == [is_explained, False]
    assert ["goes on in the same shell" in prompt for prompt in prompts] == [False, is_explained]


def test_a_second_toolset_with_the_same_name_is_refused() -> None:
    register_toolset(get_toolset("nano"))
    with pytest.raises(InvalidArgumentError, match="'nano'"):
        register_toolset(replace(get_toolset("nano")))


@pytest.mark.parametrize(
    "schema", [{"type": "strin"}, {"type": "string", "pattern": "("}, {"$ref": "#/$defs/X"}]
)
def test_a_toolset_with_an_invalid_schema_is_refused(schema: dict[str, Any]) -> None:
    tool = Tool(name="look", description="Look.", run=lambda *_: "", parameters={"at": schema})
    toolset = replace(get_toolset("nano"), name="invalid", tools=(tool,))
    with pytest.raises(InvalidArgumentError, match="look"):
        register_toolset(toolset)
    assert "invalid" not in toolset_names()


@pytest.mark.parametrize("tool_format", ["hermes", "json", "bash_block"])
def test_the_compact_toolset_has_a_short_prompt(tool_format: str) -> None:
    compact = get_toolset("compact")
    prompt = system_prompt(compact, tool_format)
    assert len(get_tokenizer("coding_gym_16k").encode(prompt)) <= 305
