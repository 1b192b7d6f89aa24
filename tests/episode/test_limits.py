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


def test_a_reserve_ends_the_episode_before_the_last_token() -> None:
    limits = Limits(max_tokens=1000, reserve_tokens=600)
    assert Usage(tokens=399).spent(limits) is None
    assert Usage(tokens=400).spent(limits) is StopReason.MAX_TOKENS
    assert Usage(tokens=400).left(limits)["tokens"] == 600


@pytest.mark.parametrize("value", [-1, 1.5, "3", None, True])
def test_a_reserve_that_is_no_number_of_tokens_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match="reserve_tokens must be an integer of at least"):
        Limits(reserve_tokens=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("max_tokens", [1, 599, 600])
def test_a_budget_that_is_all_reserve_is_refused(max_tokens: int) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"reserve_tokens \(600\), got {max_tokens};"):
        Limits(max_tokens=max_tokens, reserve_tokens=600)
    assert Limits(max_tokens=601, reserve_tokens=600).max_tokens == 601
