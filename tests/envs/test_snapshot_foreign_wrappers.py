"""Snapshots and forks of envs in wrappers that are not ours."""

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


class Remembers(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Shows how many actions there were, as anyone's wrapper may that keeps the protocol."""

    def __init__(self, env: Env, start: int = 0) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, start=start)
        gym.Wrapper.__init__(self, env)
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


def test_anyones_wrapper_can_keep_its_state(made: Env, closing: Closing) -> None:
    env = Remembers(made, start=10)
    env.reset()
    env.step(shell("true"))
    forked = closing(coding_gym.fork(env))
    assert isinstance(forked, Remembers)
    assert (forked.num_actions, forked.start) == (11, 10)
    with pytest.raises(InvalidArgumentError):
        coding_gym.snapshot(Remembers(env))


@pytest.mark.parametrize("wrap", [RecordEpisodeStatistics, Forgets])
def test_a_wrapper_with_a_memory_is_refused_by_name(wrap: Callable[[Env], Env], made: Env) -> None:
    env = wrap(made)
    env.reset()
    with pytest.raises(InvalidArgumentError, match=wrap.__name__):
        coding_gym.snapshot(env)


def test_a_fork_needs_the_arguments_of_every_wrapper(made: Env) -> None:
    class Silent(Forgets):
        def snapshot_state(self) -> None:
            return None

    env = Silent(made)
    env.reset()
    coding_gym.snapshot(env)
    with pytest.raises(InvalidArgumentError):
        coding_gym.fork(env)


def test_wrappers_of_gymnasium_without_a_memory_are_made_again(made: Env, closing: Closing) -> None:
    env = TransformReward(made, lambda reward: 3 * float(reward))
    env.reset()
    env.step(FIX)
    forked = closing(coding_gym.fork(env))
    assert forked.step(SUBMIT)[1] == 3.0
    assert str(forked) == str(env)


def test_a_failed_fork_leaves_nothing_open(made: Env) -> None:
    class Breaks(Remembers):
        closed = 0

        def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            if options:
                raise RuntimeError("not today")
            return super().reset(seed=seed)

        def close(self) -> None:
            type(self).closed += 1
            super().close()

    env = Breaks(made)
    env.reset()
    with pytest.raises(RuntimeError):
        coding_gym.fork(env)
    assert Breaks.closed == 1
    assert env.step(shell("echo on"))[4]["text"] == "on"
