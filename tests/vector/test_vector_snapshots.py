"""Groups of attempts from one snapshot, in a vector env."""

import numpy as np
import pytest
from episodes import FIX, SUBMIT, TRUE, MakeVec, shell

from coding_gym.errors import EpisodeError


def test_a_group_continues_one_envs_snapshot(started: MakeVec) -> None:
    env = started(4, wrappers=[{"name": "TokenBudget"}])
    observations, *_ = env.step([TRUE, FIX, TRUE, TRUE])
    snapshot = env.snapshot(1)
    started, infos = env.reset(options={"snapshot": snapshot})
    assert infos["turn"].tolist() == [1] * 4
    assert len(set(infos["task_id"])) == 1
    for row in started["input_ids"]:
        assert np.array_equal(row, observations["input_ids"][1])
    unfix = shell("git checkout -q .; echo > new")
    _, _, terminated, _, infos = env.step([TRUE, unfix, SUBMIT, SUBMIT])
    assert terminated.tolist() == [False, False, True, True]
    _, rewards, *_ = env.step([SUBMIT, SUBMIT, TRUE, TRUE])
    assert rewards.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_only_idle_envs_with_running_episodes_have_snapshots(started: MakeVec) -> None:
    env = started(2)
    env.send([TRUE], [0])
    with pytest.raises(EpisodeError):
        env.snapshot(0)
    env.snapshot(1)
    env.recv()
    env.step([SUBMIT, TRUE])
    with pytest.raises(EpisodeError):
        env.snapshot(0)
