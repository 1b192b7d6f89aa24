import re
from typing import Any

import numpy as np
import pytest

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.tools import get_toolset, register_toolset, tool_names, toolset_names
from coding_gym.tools.nano import NanoToolset


@pytest.mark.parametrize("name", toolset_names())
def test_every_toolset_describes_itself(name: str) -> None:
    toolset = get_toolset(name)
    assert toolset.name == name
    assert toolset.system_prompt.strip()
    assert "submit" in toolset.system_prompt  # by a tool of that name, or in another way
    for schema in toolset.schemas:
        assert schema["type"] == "function"
        assert schema["function"]["description"]
        assert schema["function"]["parameters"]["type"] == "object"


def test_an_unknown_toolset_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"'nanoo'; did you mean 'nano'\? there are bash, "):
        get_toolset("nanoo")


def test_a_name_belongs_to_one_toolset() -> None:
    register_toolset(get_toolset("nano"))
    with pytest.raises(InvalidArgumentError, match="already a toolset named 'nano'"):
        register_toolset(NanoToolset())


def test_a_subset_has_only_its_tools_and_says_so() -> None:
    toolset = get_toolset("nano[submit,shell]")
    assert toolset.name == "nano[shell,submit]"
    assert tool_names(toolset) == ("shell", "submit")
    assert get_toolset(toolset.name).schemas == toolset.schemas
    assert "only the following are there: shell, submit." in toolset.prompt(keeps_shell=False)
    drawn = {toolset.sample_call(np.random.default_rng(seed)).name for seed in range(60)}
    assert drawn == {"shell", "submit"}
    context: Any = None
    assert toolset.execute(ToolCall("apply_patch", {}, "x"), context) == ToolResult(
        "unknown tool: apply_patch", ok=False, call_id="x"
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nano[shel]", "'shel'; did you mean 'shell'"),
        ("nano[]", "name at least one tool of nano"),
        ("nano[shell", "there are bash, "),
        (7, "must be a name"),
    ],
)
def test_a_subset_that_cannot_be_is_refused(name: Any, said: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=re.escape(said)):
        get_toolset(name)
