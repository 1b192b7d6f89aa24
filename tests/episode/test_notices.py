"""What a policy is told of its budget, and when."""

from coding_gym.calls import ToolCall
from coding_gym.episode import Limits, Usage
from coding_gym.episode.usage import budget_warning

CRITICAL = "Token limit critical! Apply your best fix now.\n"
LOW = "Tokens low. Focus on the main issue only.\n"
LAST = "Last tool call! Make it count.\n"


def test_tokens_are_critical_below_1500_and_low_below_3000() -> None:
    for tokens_left, warning in [
        (0, CRITICAL),
        (1499, CRITICAL),
        (1500, LOW),
        (2999, LOW),
        (3000, ""),
        (None, ""),
    ]:
        assert budget_warning(tokens_left, None) == warning, (tokens_left, warning)


def test_the_last_four_calls_are_announced() -> None:
    for calls_left, warning in [
        (None, ""),
        (5, ""),
        (4, "4 tools left. Prioritize essential changes.\n"),
        (2, "2 tools left. Prioritize essential changes.\n"),
        (1, LAST),
    ]:
        assert budget_warning(None, calls_left) == warning, (calls_left, warning)


def test_tokens_go_before_calls() -> None:
    assert budget_warning(10, 1) == CRITICAL
    assert budget_warning(2000, 1) == LOW
    assert budget_warning(3000, 1) == LAST


def test_only_what_the_limits_ask_for_is_warned_about() -> None:
    usage, call = Usage(tokens=900, tool_calls=9), ToolCall("shell")
    bounds = {"max_tokens": 1000, "max_tool_calls": 10}
    assert usage.warning(Limits(**bounds), call) == ""
    assert usage.warning(Limits(**bounds, warn_tool_calls=True), call) == LAST
    assert usage.warning(Limits(**bounds, warn_tokens=True), call) == CRITICAL
    assert usage.warning(Limits(warn_tokens=True, warn_tool_calls=True), call) == ""
