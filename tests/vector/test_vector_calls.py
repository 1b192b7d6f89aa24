"""Methods, attributes and snapshots of single envs, and merged infos."""

import numpy as np
import pytest
from episodes import FIX, SUBMIT, TRUE, MakeVec, shell

from coding_gym.errors import EpisodeError
from coding_gym.vector.batching import merge_infos

CLIP = {"name": "gymnasium.wrappers:ClipReward", "kwargs": {"min_reward": 0.1, "max_reward": 0.5}}


def test_calls_reach_wrappers_and_envs(make: MakeVec) -> None:
    vec = make(2, env_wrappers=[CLIP])
    vec.reset(options={"task_id": "shapes-1"})
    vec.step([FIX, TRUE])
    patches = [episode.patch() for episode in vec.get_attr("episode")]
    assert ["shapes.py" in patch.text for patch in patches] == [True, False]
    with pytest.raises(AttributeError):
        vec.call("fly")
    assert vec.call("class_name") == ("ClipReward", "ClipReward")


def test_values_of_several_types_are_merged_in_any_order() -> None:
    for values in ([3, None], [None, 3], [3, 2.5], ["a", 1], [{"b": 1}, None]):
        merged = merge_infos(((index, {"a": value}) for index, value in enumerate(values)), 2)
        assert merged["a"].tolist() == values
        assert merged["_a"].tolist() == [True, True]
    merged = merge_infos([(1, {"a": 3, "b": {"c": True}})], 2)
    assert (merged["a"].dtype, merged["a"].tolist()) == (np.dtype(int), [0, 3])
    assert (merged["_a"].tolist(), merged["b"]["c"].tolist()) == ([False, True], [False, True])


def test_all_envs_can_continue_one_snapshot(started: MakeVec) -> None:
    env = started(4, env_wrappers=[{"name": "TokenBudget"}])
    observations, *_ = env.step([TRUE, FIX, TRUE, TRUE])
    snapshot = env.snapshot(1)
    first_observations, infos = env.reset(options={"snapshot": snapshot})
    assert infos["turn"].tolist() == [1] * 4
    assert len(set(infos["task_id"])) == 1
    for row in first_observations["input_ids"]:
        assert np.array_equal(row, observations["input_ids"][1])
    revert = shell("git checkout -q .; echo > new")
    _, _, terminated, _, infos = env.step([TRUE, revert, SUBMIT, SUBMIT])
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
