"""Snapshots in memory: task sequences, branches, wrappers, and refused settings."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import gymnasium as gym
import pytest
from episodes import FIX, SUBMIT, Closing, Env, Make, shell
from gymnasium.wrappers import RecordEpisodeStatistics, TransformReward

import coding_gym
from coding_gym.errors import EpisodeError, InvalidArgumentError
from coding_gym.grading import grade


@pytest.fixture
def env(make: Make) -> Env:
    """An env whose first episode has started."""
    env = make()
    env.reset()
    return env


@pytest.mark.parametrize("sampler", ["adaptive", "difficulty", "sequential", "shuffled", "uniform"])
def test_restored_env_continues_the_sequence_of_tasks(
    sampler: str, tiny_row: dict[str, Any], make: Make
) -> None:
    rows = [tiny_row | {"instance_id": f"shapes-{number}"} for number in range(5)]
    env = make(tasks=rows, sampler=sampler)
    core: Any = env.unwrapped
    env.reset(seed=3)
    for number in range(9):
        core.sampler.record("shapes-1", resolved=number % 2 == 0)
    env.reset()
    snapshot = coding_gym.snapshot(env)
    snapshot = replace(snapshot, sampler=json.loads(json.dumps(snapshot.sampler)))  # as in a file
    expected = [env.reset()[1]["task_id"] for _ in range(9)]
    assert len(set(expected)) > 1
    for _ in range(2):
        coding_gym.restore(env, snapshot)
        assert [env.reset()[1]["task_id"] for _ in range(9)] == expected
    assert core.np_random_seed == 3


def test_every_branch_is_graded_separately_and_once(
    env: Env, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    grading = mock.Mock(wraps=grade)
    monkeypatch.setattr("coding_gym.episode.episode.grade_patch", grading)
    env.step(shell("touch new.py"))
    snapshot = copy.deepcopy(coding_gym.snapshot(env))
    branches = [make() for _ in range(3)]
    env.close()  # snapshots do not need it
    for branch in branches:
        coding_gym.restore(branch, snapshot)
    assert not grading.called
    branches[0].step(FIX)
    assert [branch.step(SUBMIT)[1] for branch in branches] == [1.0, 0.0, 0.0]
    patches = [call.args[2].text for call in grading.call_args_list]
    assert ["width *" in text for text in patches] == [True, False, False]


def test_reset_starts_from_a_snapshot(tiny_row: dict[str, Any], env: Env, make: Make) -> None:
    rows = [tiny_row | {"instance_id": f"shapes-{number}"} for number in range(9)]
    env.step(FIX)
    snapshot = coding_gym.snapshot(env)
    other = make(tasks=rows, sampler="sequential", max_obs_tokens=64)
    assert other.reset()[1]["task_id"] == "shapes-0"
    _, info = other.reset(options={"snapshot": snapshot})
    assert (info["task_id"], info["turn"]) == ("shapes-area", 1)
    assert other.step(SUBMIT)[1] == 1.0
    assert other.reset()[1]["task_id"] == "shapes-1"
    with pytest.raises(InvalidArgumentError):
        coding_gym.restore(other, snapshot)


def test_other_settings_are_refused_and_the_episode_continues(make: Make) -> None:
    env = make()
    env.reset()
    snapshot = coding_gym.snapshot(env)
    other = make(max_turns=3)
    other.reset()
    other.step(FIX)
    with pytest.raises(InvalidArgumentError, match="limits"):
        coding_gym.restore(other, snapshot)
    with pytest.raises(InvalidArgumentError, match="limits"):
        other.reset(options={"snapshot": snapshot})
    assert other.step(SUBMIT)[1] == 1.0


def test_only_a_running_episode_has_a_snapshot(make: Make, closing: Closing) -> None:
    env = make()
    with pytest.raises(EpisodeError):
        coding_gym.snapshot(env)
    env.reset()
    env.step(SUBMIT)
    with pytest.raises(EpisodeError):
        coding_gym.snapshot(env)
    env.reset()
    with pytest.raises(InvalidArgumentError):
        coding_gym.restore(env, None)  # type: ignore[arg-type]
    env.close()
    with pytest.raises(EpisodeError):
        coding_gym.snapshot(env)
    with pytest.raises(InvalidArgumentError, match="CartPole"):
        coding_gym.snapshot(closing(gym.make("CartPole-v1")))


def test_a_running_step_refuses_snapshots_and_steps(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolset = env.unwrapped.toolset  # type: ignore[attr-defined]
    execute = toolset.execute

    def execute_alone(call: Any, context: Any) -> Any:
        for other in (partial(coding_gym.snapshot, env), partial(env.step, SUBMIT)):
            with pytest.raises(EpisodeError, match="another call"):
                other()
        return execute(call, context)

    monkeypatch.setitem(vars(toolset), "execute", execute_alone)
    assert env.step(shell("touch new.py"))[4]["text"] == "command succeeded"
    assert coding_gym.snapshot(env).episode.usage.turns == 1


class CountsActions(gym.Wrapper[Any, Any, Any, Any]):
    """A user's wrapper that saves its number of actions in snapshots."""

    num_actions = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        snapshot = (options or {}).get("snapshot")
        self.num_actions = 0 if snapshot is None else snapshot.state_of(self)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.num_actions += 1
        return self.env.step(action)

    def snapshot_state(self) -> int:
        return self.num_actions


class WithoutState(gym.Wrapper[Any, Any, Any, Any]):
    """A user's wrapper without ``snapshot_state``."""


def test_a_users_wrapper_can_save_its_state(make: Make) -> None:
    env = CountsActions(make())
    env.reset()
    env.step(shell("true"))
    snapshot = coding_gym.snapshot(env)
    env.step(shell("true"))
    coding_gym.restore(env, snapshot)
    assert env.num_actions == 1
    with pytest.raises(InvalidArgumentError):
        coding_gym.snapshot(CountsActions(env))
    with pytest.raises(InvalidArgumentError, match="CountsActions"):
        coding_gym.restore(env.env, snapshot)
    with pytest.raises(InvalidArgumentError, match="CountsActions"):
        coding_gym.restore(env, coding_gym.snapshot(env.env))
    assert env.num_actions == 1


@pytest.mark.parametrize("wrap", [RecordEpisodeStatistics, WithoutState])
def test_an_unknown_wrapper_is_refused_by_name(wrap: Callable[[Env], Env], make: Make) -> None:
    env = wrap(make())
    env.reset()
    with pytest.raises(InvalidArgumentError, match=wrap.__name__):
        coding_gym.snapshot(env)


def test_gymnasiums_stateless_wrappers_are_supported(make: Make) -> None:
    env = TransformReward(make(), lambda reward: 3 * float(reward))
    env.reset()
    env.step(FIX)
    snapshot = coding_gym.snapshot(env)
    env.step(SUBMIT)
    coding_gym.restore(env, snapshot)
    assert env.step(SUBMIT)[1] == 3.0
