"""`TimeBudget` and `CostBudget`: what counts, when it ends, what is left of it."""

from collections.abc import Callable
from typing import Any

import pytest
from episodes import Closing, Env, shells

import coding_gym
from coding_gym import Completion
from coding_gym.wrappers import CostBudget, TimeBudget, TokenBudget


def usage(env: Env) -> Any:
    return env.unwrapped.episode.usage


@pytest.mark.parametrize("clock", ["commands", "wall"])
def test_a_command_is_killed_when_the_time_is_up(clock: str, env: Env) -> None:
    wrapped = TimeBudget(env, max_seconds=1.5, clock=clock)
    wrapped.reset()
    _, _, terminated, truncated, info = wrapped.step(shells("sleep 100", "echo never"))
    assert (terminated, truncated, info["stop_reason"]) == (False, True, "max_time")
    assert "exit code 124. Error output:\nCommand timed out after 1." in info["text"]
    assert "never" not in info["text"]
    assert info["budget"]["seconds"] == 0
    assert info["grade"].reason == "empty_patch"
    assert not info["mask_sample"]


def test_commands_spend_the_time_that_they_took_and_thinking_none(env: Env) -> None:
    wrapped = TimeBudget(env, max_seconds=500)
    assert wrapped.reset()[1]["budget"]["seconds"] == 500
    assert wrapped.step("I wonder.")[4]["budget"]["seconds"] == 500
    wrapped.step(shells("true", "sleep 0.05"))
    left = usage(wrapped).seconds_left(wrapped.unwrapped.episode.bounds)
    (turn,) = wrapped.unwrapped.episode.turns[1:]
    took = sum(result.duration_s for result in turn.results)
    assert took > 0.05
    assert 0 <= 500 - took - left < 0.001


def test_the_wall_clock_runs_between_actions(env: Env) -> None:
    wrapped = TimeBudget(env, max_seconds=500, clock="wall")
    wrapped.reset()
    usage(wrapped).since -= 400  # as if the policy had thought so long
    assert 90 < wrapped.step("I wonder.")[4]["budget"]["seconds"] <= 100
    usage(wrapped).since -= 100
    _, _, _, truncated, info = wrapped.step(shells("touch late"))
    assert (truncated, info["stop_reason"], info["messages"]) == (True, "max_time", [])
    assert wrapped.unwrapped.patch().is_empty


def test_a_snapshot_keeps_used_time(env: Env, make: Callable[..., Env], closing: Closing) -> None:
    wrapped = TimeBudget(env, max_seconds=500, clock="wall")
    wrapped.reset()
    usage(wrapped).since -= 100
    moment = coding_gym.snapshot(wrapped)
    usage(wrapped).since -= 300
    twin = closing(coding_gym.fork(wrapped))
    assert twin.step("Hm.")[4]["budget"]["seconds"] <= 100
    _, info = TimeBudget(make(), 500, "wall").reset(options={"snapshot": moment})
    assert 300 < info["budget"]["seconds"] <= 400


def test_every_reply_is_charged_with_its_prompt(env: Env) -> None:
    wrapped = CostBudget(env, max_cost=1.0, input_price=2.0, output_price=8.0)
    assert wrapped.reset()[1]["budget"]["cost"] == 1.0
    expected = 1.0
    for num_tokens in (5, 700):
        prompt = usage(wrapped).tokens
        assert prompt > 300
        info = wrapped.step(Completion(shells("echo one"), range(num_tokens)))[4]
        expected -= (prompt * 2.0 + num_tokens * 8.0) / 1e6
        assert info["budget"]["cost"] == pytest.approx(expected, abs=1e-12)
        assert info["budget"]["tokens"] is None


def test_the_episode_ends_when_the_money_is_spent(env: Env) -> None:
    wrapped = CostBudget(env, max_cost=2.0, input_price=0.0, output_price=1e6)
    wrapped.reset()
    assert not wrapped.step(Completion("Hm.", [1]))[3]
    _, _, _, truncated, info = wrapped.step(Completion(shells("echo 1", "echo 2"), [1]))
    assert (truncated, info["stop_reason"], info["text"]) == (True, "max_cost", "1")
    assert info["budget"]["cost"] == 0.0


def test_the_cost_is_counted_as_a_token_budget_counts(env: Env) -> None:
    left = {}
    for count in ("chat", "content"):
        wrapped = CostBudget(TokenBudget(env, count=count), 1.0, 1.0, 0.0)
        budget = wrapped.reset()[1]["budget"]
        left[count] = wrapped.step("Hm.")[4]["budget"]["cost"]
        assert left[count] == pytest.approx(1.0 - (8192 - budget["tokens"]) / 1e6, abs=1e-12)
    assert left["chat"] < left["content"]
