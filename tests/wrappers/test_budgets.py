"""`TokenBudget` and `ToolCallBudget`: counts, warnings, ends."""

import json
from dataclasses import replace
from typing import Any

import pytest
from episodes import FIX, SUBMIT, Env, MakeEnv, replies, shells

from coding_gym import Completion, Stop
from coding_gym.episode import Limits
from coding_gym.errors import InvalidArgumentError
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.wrappers import CollapseDetector, TimeBudget, TokenBudget, ToolCallBudget

CRITICAL = "Token limit critical! Apply your best fix now.\n"
LAST = "Last tool call! Make it count.\n"


def few(num_calls: int) -> str:
    return f"{num_calls} tools left. Prioritize essential changes.\n"


def num_tokens(*texts: str) -> int:
    return sum(len(get_tokenizer().encode(text)) for text in texts)


def test_the_defaults_are_nanos(env: Env) -> None:
    wrapped = ToolCallBudget(TokenBudget(env))
    assert wrapped.unwrapped.limits == Limits(
        max_turns=50,
        max_tool_calls=30,
        max_tokens=8192,
        reserve_tokens=600,
        warn_tokens=True,
        warn_tool_calls=True,
    )


def test_a_wrapper_keeps_limits_that_it_does_not_set(make_env: MakeEnv) -> None:
    limits = {"response_limit": 99, "count": "content", "reserve_tokens": 7, "clock": "wall"}
    env = make_env(limits=limits)
    TimeBudget(TokenBudget(env, max_tokens=4000), 60)
    assert env.limits == Limits(max_tokens=4000, warn_tokens=True, max_seconds=60, **limits)
    again = make_env(limits=limits)  # with the same values once more
    TokenBudget(again, 4000, reserve_tokens=7, count="content", response_limit=99)
    assert again.limits == replace(env.limits, max_seconds=None)


@pytest.mark.parametrize(
    ("limits", "wrapper", "arguments"),
    [
        ({"max_tool_calls": 5}, ToolCallBudget, {}),
        ({"reserve_tokens": 7}, TokenBudget, {"reserve_tokens": 8}),
        ({"warn_tokens": True}, TokenBudget, {"warnings": False}),
        ({"max_repeats": 4}, CollapseDetector, {}),
    ],
)
def test_a_limit_set_to_two_values_is_refused(
    limits: dict[str, Any], wrapper: Any, arguments: dict[str, Any], make_env: MakeEnv
) -> None:
    env = make_env(limits=limits)
    with pytest.raises(InvalidArgumentError, match=next(iter(limits))):
        wrapper(env, **arguments)
    assert env.limits == Limits.parse(limits)


def test_contents_of_prompt_replies_and_observations_are_counted(env: Env) -> None:
    wrapped = TokenBudget(env, max_tokens=5000, count="content")
    _, info = wrapped.reset()
    left = 5000 - num_tokens(*(m["content"] for m in info["messages"]))
    assert info["budget"]["tokens"] == left
    action = shells("echo one", "echo two")
    _, _, _, _, info = wrapped.step(action)
    left -= num_tokens(action) + num_tokens("one") + num_tokens("two")
    assert info["budget"]["tokens"] == left
    _, _, _, _, info = wrapped.step("I wonder.")
    assert info["budget"]["tokens"] == left - num_tokens("I wonder.", info["text"])


def completion_that_leaves(left: int, budget: dict[str, Any], action: str) -> Completion:
    """A reply of so many tokens that ``left`` are left before its first call is answered."""
    return Completion(action, range(budget["tokens"] - left))


def test_calls_after_the_budget_is_spent_do_not_run(env: Env) -> None:
    wrapped = TokenBudget(env)
    budget = wrapped.reset()[1]["budget"]
    action = shells("echo one", "seq 200", "echo three")
    _, _, _, truncated, info = wrapped.step(completion_that_leaves(700, budget, action))
    assert truncated
    assert [reply.removeprefix(CRITICAL)[:3] for reply in replies(info)] == ["one", "1\n2"]


@pytest.mark.parametrize("in_one_reply", [True, False])
def test_each_of_the_last_calls_is_announced(env: Env, in_one_reply: bool) -> None:
    wrapped = ToolCallBudget(env, max_tool_calls=6)
    wrapped.reset()
    commands = [f"echo {n}" for n in range(6)]
    said: list[str] = []
    truncated = False
    for action in [shells(*commands)] if in_one_reply else [shells(c) for c in commands]:
        assert not truncated
        _, _, _, truncated, info = wrapped.step(action)
        said += replies(info)
    assert said == ["0", "1", few(4) + "2", few(3) + "3", few(2) + "4", LAST + "5"]
    assert truncated
    assert info["stop_reason"] == "max_tool_calls"
    assert info["budget"]["tool_calls"] == 0


def test_a_budget_of_one_call_is_one_call(env: Env) -> None:
    wrapped = ToolCallBudget(env, max_tool_calls=1)
    wrapped.reset()
    _, reward, terminated, truncated, info = wrapped.step(f"[{FIX}, {SUBMIT}]")
    assert (reward, terminated, truncated) == (1.0, False, True)
    assert info["text"] == LAST + "patch applied successfully"


def test_failed_calls_are_warned_and_a_nudge_is_not(env: Env) -> None:
    wrapped = ToolCallBudget(env, max_tool_calls=5)
    wrapped.reset()
    assert wrapped.step("Let me think.")[4]["budget"]["tool_calls"] == 4
    unknown = '{"name": "sing", "arguments": {}}'
    malformed = json.dumps([{"function": {"name": "shell", "arguments": '{"cmd": '}}])
    assert wrapped.step(unknown)[4]["text"] == few(4) + "unknown tool: sing"
    text = wrapped.step(malformed)[4]["text"]
    assert text.startswith(few(3) + "Malformed tool arguments JSON: ")
    text = wrapped.step("Hm.")[4]["text"]
    assert text == "Use shell to explore or apply_patch to make changes. Do not stop working."
    assert wrapped.step(shells("false"))[4]["text"].startswith(LAST + "command failed")


def test_without_warnings_the_limits_hold_in_silence(env: Env) -> None:
    wrapped = ToolCallBudget(
        TokenBudget(env, max_tokens=2000, warnings=False), max_tool_calls=2, warnings=False
    )
    wrapped.reset()
    assert wrapped.step(shells("echo one"))[4]["text"] == "one"
    _, _, _, truncated, info = wrapped.step(shells("echo two"))
    assert truncated
    assert info["text"] == "two"


def test_the_trajectory_holds_replies_as_the_policy_saw_them(env: Env) -> None:
    wrapped = ToolCallBudget(env, max_tool_calls=2)
    wrapped.reset()
    wrapped.step(shells("echo one", "echo two"))
    trajectory = wrapped.unwrapped.episode.trajectory()
    assert [r.content for r in trajectory.turns[0].results] == [few(2) + "one", LAST + "two"]
    assert trajectory.turns[0].observation == f"{few(2)}one\n{LAST}two"
    assert [m["content"] for m in trajectory.messages[-2:]] == [few(2) + "one", LAST + "two"]


def test_a_prompt_beyond_its_budget_ends_early(env: Env, caplog: pytest.LogCaptureFixture) -> None:
    wrapped = TokenBudget(env, max_tokens=601, count="content")
    _, info = wrapped.reset()
    assert len(caplog.messages) == 1
    assert (info["stop_reason"], info["budget"]["tokens"]) == (None, 601 - prompt_tokens(info))
    _, reward, terminated, truncated, info = wrapped.step(FIX)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["stop_reason"] == "max_tokens"
    assert (info["messages"], info["tool_calls"]) == ([], 0)
    assert info["grade"].reason == "empty_patch"
    assert not info["mask_sample"]
    wrapped.reset()
    assert wrapped.step(Stop())[4]["stop_reason"] == "stopped"


def prompt_tokens(info: dict[str, Any]) -> int:
    return num_tokens(*(m["content"] for m in info["messages"]))


def test_a_running_episode_keeps_its_limits(env: Env) -> None:
    env.reset()
    wrapped = ToolCallBudget(env, max_tool_calls=1)
    assert wrapped.step(shells("echo one"))[4]["budget"]["tool_calls"] is None
    wrapped.reset()
    assert wrapped.step(shells("echo one"))[3]
