import pytest

from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.tools import get_toolset, register_toolset, tool_names, toolset_names
from coding_gym.tools.nano import NanoToolset


@pytest.mark.parametrize("name", toolset_names())
def test_every_toolset_describes_itself(name: str) -> None:
    toolset = get_toolset(name)
    assert toolset.name == name
    assert toolset.system_prompt.strip()
    assert "submit" in tool_names(toolset)
    for schema in toolset.schemas:
        assert schema["type"] == "function"
        assert schema["function"]["description"]
        assert schema["function"]["parameters"]["type"] == "object"


def test_an_unknown_toolset_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"'nanoo'; did you mean 'nano'\? there are nano"):
        get_toolset("nanoo")


def test_a_name_belongs_to_one_toolset() -> None:
    register_toolset(get_toolset("nano"))
    with pytest.raises(InvalidArgumentError, match="already a toolset named 'nano'"):
        register_toolset(NanoToolset())
