import pytest

from coding_gym.episode import Limits, Usage
from coding_gym.errors import InvalidArgumentError
from coding_gym.trajectory import StopReason


@pytest.mark.parametrize("name", ["max_turns", "max_tool_calls", "max_tokens"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "3"])
def test_bounds_that_no_episode_could_keep_are_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} must be an integer of at least 1"):
        Limits(**{name: value})  # type: ignore[arg-type]


def test_what_is_left_never_goes_below_zero_and_is_none_without_a_bound() -> None:
    usage = Usage(turns=3, tool_calls=9, tokens=100)
    left = usage.left(Limits(max_turns=5, max_tool_calls=4))
    assert left == {"turns": 2, "tool_calls": 0, "tokens": None}


def test_a_spent_bound_names_its_reason() -> None:
    assert Usage(tool_calls=4).spent(Limits(max_tool_calls=4)) is StopReason.MAX_TOOL_CALLS
    assert Usage(tokens=9).spent(Limits(max_tokens=8)) is StopReason.MAX_TOKENS
    assert Usage(turns=50).spent_turns(Limits()) is StopReason.MAX_TURNS
    assert Usage(turns=49, tool_calls=999).spent(Limits()) is None
    assert Usage(turns=49).spent_turns(Limits()) is None
