"""Snapshots of envs in wrappers that are not ours."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from episodes import FIX, SUBMIT, Closing, Env, shell
from gymnasium.wrappers import RecordEpisodeStatistics, TransformReward

import coding_gym
from coding_gym.errors import InvalidArgumentError


@pytest.fixture
def made(tiny_row: dict[str, Any], closing: Closing) -> Env:
    env: Env = closing(gym.make("CodingRepair-v0", tasks=[tiny_row]))
    return env


class Remembers(gym.Wrapper[Any, Any, Any, Any]):
    """Shows how many actions there were, as anyone's wrapper may that keeps the protocol."""

    def __init__(self, env: Env, start: int = 0) -> None:
        super().__init__(env)
        self.start = self.num_actions = start

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        started = self.env.reset(seed=seed, options=options)
        snapshot = (options or {}).get("snapshot")
        self.num_actions = self.start if snapshot is None else snapshot.state_of(self)
        return started

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.num_actions += 1
        return self.env.step(action)

    def snapshot_state(self) -> int:
        return self.num_actions


class Forgets(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that may or may not have a state."""


def test_anyones_wrapper_can_keep_its_state(made: Env) -> None:
    env = Remembers(made, start=10)
    env.reset()
    env.step(shell("true"))
    snapshot = coding_gym.snapshot(env)
    env.step(shell("true"))
    coding_gym.restore(env, snapshot)
    assert env.num_actions == 11
    with pytest.raises(InvalidArgumentError):
        coding_gym.snapshot(Remembers(env))


@pytest.mark.parametrize("wrap", [RecordEpisodeStatistics, Forgets])
def test_a_wrapper_with_a_memory_is_refused_by_name(wrap: Callable[[Env], Env], made: Env) -> None:
    env = wrap(made)
    env.reset()
    with pytest.raises(InvalidArgumentError, match=wrap.__name__):
        coding_gym.snapshot(env)


def test_wrappers_of_gymnasium_without_a_memory_need_no_state(made: Env) -> None:
    env = TransformReward(made, lambda reward: 3 * float(reward))
    env.reset()
    env.step(FIX)
    snapshot = coding_gym.snapshot(env)
    env.step(SUBMIT)
    coding_gym.restore(env, snapshot)
    assert env.step(SUBMIT)[1] == 3.0
