"""Snapshots of other chains of wrappers."""

from pathlib import Path

import gymnasium as gym
import pytest
from episodes import SHELF, Closing, Env
from shelf_menu import RUN_TESTS, make

import coding_gym
from coding_gym import Stop
from coding_gym.errors import EpisodeError, InvalidArgumentError, UnknownTaskError
from coding_gym.rollout import read_trajectories
from coding_gym.wrappers import RecordTrajectory, ShapedReward

LOOK = '{"name": "shell", "arguments": {"cmd": "ls"}}'


def test_menus_continue_only_menus_of_their_size(closing: Closing) -> None:
    env, other = closing(make(8)), closing(make(5))
    with pytest.raises(EpisodeError):
        coding_gym.snapshot(env)
    env.reset()
    other.reset()
    env.step(RUN_TESTS)
    without_menu = coding_gym.snapshot(env.unwrapped)
    for snapshot in (coding_gym.snapshot(env), without_menu):
        with pytest.raises(InvalidArgumentError, match="num_candidates=5"):
            coding_gym.restore(other, snapshot)
    with pytest.raises(InvalidArgumentError, match="coding_gym"):
        other.reset(options={"snapshot": 3})
    other.step(RUN_TESTS)  # nothing was dropped


def test_an_untouched_branch_is_not_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "episodes"
    made: Env = gym.make("CodingRepair-v0", tasks=[SHELF])
    shaped = ShapedReward(made, [{"name": "tool_call_validity", "weight": 0.2}])
    env = RecordTrajectory(shaped, folder, unfinished=True)
    env.reset()
    env.step(LOOK)
    forks = [coding_gym.fork(env) for _ in range(2)]
    forks[1].step(Stop("enough"))
    for each in (*forks, env):
        each.close()
    finished, unfinished = read_trajectories(folder)
    expected = [{}, {"resolved": 0.0, "tool_call_validity": 0.2}]
    assert [turn.reward_parts for turn in finished.turns] == expected
    assert (len(unfinished.turns), unfinished.stop_reason) == (1, None)


def test_a_refused_reset_leaves_the_running_record_whole(tmp_path: Path, closing: Closing) -> None:
    folder = tmp_path / "episodes"
    other = closing(make(5))
    other.reset()
    env = closing(RecordTrajectory(make(8), folder, unfinished=True))
    env.reset()
    env.step(RUN_TESTS)
    with pytest.raises(InvalidArgumentError, match="num_candidates"):
        coding_gym.restore(env, coding_gym.snapshot(other))
    with pytest.raises(UnknownTaskError):
        env.reset(options={"task_id": "nowhere"})
    assert not any(folder.iterdir())
    env.step(Stop("enough"))
    (finished,) = read_trajectories(folder)
    assert [turn.reward_parts for turn in finished.turns][1] == {"resolved": 0.0}
    assert len(finished.turns) == 2
    env.reset()
    env.step(RUN_TESTS)
    env.reset()
    assert [len(each.turns) for each in read_trajectories(folder)] == [2, 1]
