"""Which task comes when: groups, and resets that were begun ahead of time."""

from typing import Any

import numpy as np
import pytest
from episodes import SUBMIT, MakeVec

from coding_gym.errors import InvalidArgumentError
from coding_gym.vector import CodingRepairVectorEnv


def sequences(vec: CodingRepairVectorEnv, num_steps: int, **reset: Any) -> list[list[str]]:
    """Returns the tasks of each env, one after the other, where some submit more often."""
    _, infos = vec.reset(**reset)
    tasks = [[task] for task in infos["task_id"]]
    over = np.zeros(vec.num_envs, bool)
    for step in range(num_steps):
        actions = [SUBMIT if step % (2 * index + 1) == 0 else "{" for index in range(vec.num_envs)]
        _, _, terminations, _, infos = vec.step(actions)
        for index in np.flatnonzero(over):
            tasks[index].append(infos["task_id"][index])
        over = terminations
    return tasks


def common(left: list[str], right: list[str]) -> bool:
    """Whether the shorter one is the beginning of the other."""
    length = min(len(left), len(right))
    return left[:length] == right[:length]


@pytest.mark.parametrize("reset", [{}, {"seed": 4}, {"seed": [8, 9]}], ids=str)
def test_the_kth_episodes_of_a_group_are_of_one_task(make: MakeVec, reset: dict[str, Any]) -> None:
    tasks = sequences(make(4, group_size=2), 12, **reset)
    assert len(tasks[0]) > len(tasks[1]) > 2
    assert common(tasks[0], tasks[1])
    assert common(tasks[2], tasks[3])
    assert not common(tasks[0], tasks[2])


def test_an_unseeded_reset_brings_a_group_together_again(make: MakeVec) -> None:
    for prefetch in (False, True):
        vec = make(4, group_size=4, sampler="sequential", prefetch=prefetch)
        tasks = sequences(vec, 6)
        _, infos = vec.reset()
        assert set(infos["task_id"]) == {f"shapes-{len(tasks[0])}"}


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["uniform", "shuffled", "sequential"])
def test_resetting_ahead_of_time_changes_no_task(make: MakeVec, sampler: str) -> None:
    plain, ahead = (make(3, sampler=sampler, prefetch=prefetch) for prefetch in (False, True))
    assert sequences(plain, 9, seed=5) == sequences(ahead, 9, seed=5)
    assert sequences(plain, 9) == sequences(ahead, 9)
    assert sequences(plain, 9, seed=5) == sequences(ahead, 9, seed=5)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"num_envs": 3, "group_size": 2},
        {"num_envs": 0},
        {"num_envs": 2, "group_size": 0},
        {"num_envs": 2, "num_threads": 0},
    ],
    ids=str,
)
def test_sizes_that_cannot_be_are_refused(kwargs: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        CodingRepairVectorEnv(**kwargs)


@pytest.mark.parametrize(
    "seed", ["7", True, -1, 1.5, [1, 2, 3, 4], ["7", "8"], [1.5, 2], [True, 1], [0, -1]], ids=str
)
def test_seeds_that_fit_no_group_are_refused(make: MakeVec, seed: Any) -> None:
    vec = make(4, group_size=2)
    with pytest.raises(InvalidArgumentError):
        vec.reset(seed=seed)
