"""Limits of an episode: remaining amounts, the reason of the end, and warnings."""

from typing import Any

import pytest

from coding_gym.calls import ToolCall
from coding_gym.episode import Limits, Usage
from coding_gym.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("max_turns", 0), ("max_tool_calls", 1.5), ("max_tokens", "3")],
        *[("reserve_tokens", value) for value in (-1, 1.5, None, True)],
        *[("max_seconds", 0), ("max_seconds", float("nan")), ("max_cost", 0), ("max_cost", True)],
        *[("max_repeats", 1), ("max_format_errors", 0)],
        *[("input_price", -1), ("output_price", None)],
        *[("warn_tokens", "no"), ("warn_tool_calls", 1)],
    ],
)
def test_an_invalid_limit_is_named(name: str, value: Any) -> None:
    prices = {"input_price": 1} if name == "max_cost" else {}
    with pytest.raises(InvalidArgumentError, match=name):
        Limits.parse(prices | {name: value})


def test_a_task_can_only_lower_the_limit_of_turns() -> None:
    limits = Limits(max_turns=10)
    assert limits.with_turns(0) is limits
    assert limits.with_turns(11) is limits
    assert limits.with_turns(3).max_turns == 3
    assert Limits(max_turns=None).with_turns(3).max_turns == 3


def test_a_cost_needs_a_price_and_tokens_more_than_the_reserve() -> None:
    with pytest.raises(InvalidArgumentError, match="max_cost"):
        Limits(max_cost=1)
    with pytest.raises(InvalidArgumentError, match="reserve_tokens"):
        Limits(max_tokens=600, reserve_tokens=600)
    assert Limits(max_tokens=601, reserve_tokens=600).max_tokens == 601


def test_contradicting_max_turns_and_limits_are_refused() -> None:
    assert Limits.parse({"max_tool_calls": 3}, 7) == Limits(max_turns=7, max_tool_calls=3)
    assert Limits.parse({"max_turns": 7}).max_turns == 7
    assert Limits.parse({"max_turns": None}, None).max_turns is None
    with pytest.raises(InvalidArgumentError, match="max_turns"):
        Limits.parse({"max_turns": 7}, 8)
    with pytest.raises(InvalidArgumentError, match="max_tokens"):
        Limits.parse({"max_token": 7})
    with pytest.raises(InvalidArgumentError):
        Limits.parse(7)  # type: ignore[arg-type]


CRITICAL = "Token limit critical! Apply your best fix now.\n"
LOW = "Tokens low. Focus on the main issue only.\n"
LAST = "Last tool call! Make it count.\n"


def test_token_warnings_precede_call_warnings() -> None:
    limits = Limits(max_tokens=5000, warn_tokens=True, max_tool_calls=10, warn_tool_calls=True)
    for tokens_left, calls_left, warning in [
        (0, 9, CRITICAL),
        (1499, 9, CRITICAL),
        (1500, 9, LOW),
        (2999, 9, LOW),
        (3000, 9, ""),
        (10, 1, CRITICAL),
        (2000, 1, LOW),
        (3000, 1, LAST),
    ]:
        usage = Usage(tokens=5000 - tokens_left, tool_calls=10 - calls_left)
        assert usage.warning(limits, ToolCall("shell")) == warning, (tokens_left, warning)


def test_only_enabled_warnings_are_displayed() -> None:
    usage, call = Usage(tokens=900, tool_calls=9), ToolCall("shell")
    bounds = {"max_tokens": 1000, "max_tool_calls": 10}
    assert usage.warning(Limits(**bounds), call) == ""
    assert usage.warning(Limits(**bounds, warn_tool_calls=True), call) == LAST
    assert usage.warning(Limits(**bounds, warn_tokens=True), call) == CRITICAL
    assert usage.warning(Limits(warn_tokens=True, warn_tool_calls=True), call) == ""
