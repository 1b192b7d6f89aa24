"""Snapshots and forks of envs in wrappers that are not ours."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.wrappers import RecordEpisodeStatistics, TransformReward
from moves import FIX, SUBMIT, shell

import coding_gym
from coding_gym.errors import InvalidArgumentError

Env = gym.Env[Any, Any]


def make(row: dict[str, Any]) -> Env:
    return gym.make("CodingRepair-v0", tasks=[row])


class Remembers(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Shows how many actions there were, as anyone's wrapper may that keeps the protocol."""

    def __init__(self, env: Env, start: int = 0) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, start=start)
        gym.Wrapper.__init__(self, env)
        self.start = self.num_actions = start

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        started = self.env.reset(seed=seed, options=options)
        moment = (options or {}).get("snapshot")
        self.num_actions = self.start if moment is None else moment.state_of(self)
        return started

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.num_actions += 1
        return self.env.step(action)

    def snapshot_state(self) -> int:
        return self.num_actions


class Forgets(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper of which nobody knows whether it remembers anything."""


def test_anyones_wrapper_can_keep_its_state(tiny_row: dict[str, Any]) -> None:
    env = Remembers(make(tiny_row), start=10)
    env.reset()
    env.step(shell("true"))
    forked = coding_gym.fork(env)
    assert isinstance(forked, Remembers)
    assert (forked.num_actions, forked.start) == (11, 10)
    forked.close()
    env.close()
    with pytest.raises(InvalidArgumentError, match="the state of one Remembers, got two"):
        coding_gym.snapshot(Remembers(env))


@pytest.mark.parametrize("wrap", [RecordEpisodeStatistics, Forgets])
def test_a_wrapper_that_may_remember_something_is_refused_by_name(
    wrap: Callable[[Env], Env], tiny_row: dict[str, Any]
) -> None:
    env = wrap(make(tiny_row))
    env.reset()
    with pytest.raises(InvalidArgumentError, match=f"{wrap.__name__} may remember"):
        coding_gym.snapshot(env)
    env.close()


def test_a_fork_needs_the_arguments_of_every_wrapper(tiny_row: dict[str, Any]) -> None:
    class Silent(Forgets):
        def snapshot_state(self) -> None:
            return None

    env = Silent(make(tiny_row))
    env.reset()
    coding_gym.snapshot(env)
    with pytest.raises(InvalidArgumentError, match="Silent does not record its arguments"):
        coding_gym.fork(env)
    env.close()


def test_wrappers_of_gymnasium_without_a_memory_are_made_again(tiny_row: dict[str, Any]) -> None:
    env = TransformReward(make(tiny_row), lambda reward: 3 * float(reward))
    env.reset()
    env.step(FIX)
    forked = coding_gym.fork(env)
    assert forked.step(SUBMIT)[1] == 3.0
    assert str(forked) == str(env)
    forked.close()
    env.close()


def test_a_failed_fork_leaves_nothing_open(tiny_row: dict[str, Any]) -> None:
    class Breaks(Remembers):
        closed = 0

        def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            if options:
                raise RuntimeError("not today")
            return super().reset(seed=seed)

        def close(self) -> None:
            type(self).closed += 1
            super().close()

    env = Breaks(make(tiny_row))
    env.reset()
    with pytest.raises(RuntimeError, match="not today"):
        coding_gym.fork(env)
    assert Breaks.closed == 1
    assert env.step(shell("echo on"))[4]["text"] == "on"
    env.close()
