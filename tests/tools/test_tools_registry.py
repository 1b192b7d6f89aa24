from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.tools import get_toolset, register_toolset, tool_names, toolset_names
from coding_gym.tools.schemas import argument_errors, array, function, integer


def test_a_name_belongs_to_one_toolset() -> None:
    register_toolset(get_toolset("nano"))
    with pytest.raises(InvalidArgumentError, match="'nano'"):
        register_toolset(replace(get_toolset("nano")))


def test_a_subset_has_only_its_tools_and_says_so() -> None:
    toolset = get_toolset("nano[submit,shell]")
    assert toolset.name == "nano[shell,submit]"
    assert tool_names(toolset) == ("shell", "submit")
    assert get_toolset(toolset.name).schemas == toolset.schemas
    assert "shell, submit" in toolset.prompt(keeps_shell=False)
    drawn = {toolset.sample_call(np.random.default_rng(seed)).name for seed in range(60)}
    assert drawn == {"shell", "submit"}
    context: Any = None
    assert toolset.execute(ToolCall("apply_patch", {}, "x"), context) == ToolResult(
        "unknown tool: apply_patch", ok=False, call_id="x"
    )


@pytest.mark.parametrize("name", ["nano[shel]", "nano[]", "nano[shell", 7])
def test_an_impossible_subset_is_refused(name: Any) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError)):
        get_toolset(name)


@pytest.mark.parametrize("name", sorted({*toolset_names()} - {"heavy"}))
def test_a_prompt_names_every_argument_of_every_tool(name: str) -> None:
    toolset = get_toolset(name)
    for tool in toolset.tools:
        for argument in tool.parameters:
            assert f"`{argument}`" in toolset.system_prompt, (tool.name, argument)


def test_arguments_are_checked_against_a_schema() -> None:
    schema = function(
        "look",
        "Looks.",
        optional=("depth", "names", "mode", "rest"),
        path="Where",
        depth=integer("How deep", minimum=1, maximum=6),
        names=array("Which", "string"),
        mode={"type": ["string", "null"], "enum": ["a", None]},
        rest={"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
    )
    good = {"depth": 1, "names": ["a"], "mode": None, "rest": {"x": 1, "more": 2}}
    assert argument_errors(schema, {"path": "src"} | good) == []
    assert argument_errors(schema, {"size": 1}) == ["there is no size", "path is missing"]
    for wrong in (
        {"path": 3},
        {"depth": 0},
        {"depth": 7},
        {"depth": True},
        {"depth": 1.5},
        {"names": "a"},
        {"names": ["a", 2]},
        {"mode": "b"},
        {"rest": {"x": "1"}},
        {"rest": {}},
    ):
        assert len(argument_errors(schema, {"path": "src"} | wrong)) == 1, wrong
