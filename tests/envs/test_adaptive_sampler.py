"""Samplers that learn from the results of an env, and of all envs of a vector env."""

import json
from typing import Any

import pytest
from moves import SUBMIT

from coding_gym.envs import CodingRepairEnv
from coding_gym.errors import InvalidArgumentError
from coding_gym.tasks import load_tasks
from coding_gym.vector import make_vec

IDS = ["first", "second"]
ADAPTIVE = {"name": "adaptive", "min_tries": 2, "window": 4, "revisit": 0}


@pytest.fixture
def rows(tiny_row: dict[str, Any]) -> list[dict[str, Any]]:
    return [tiny_row | {"instance_id": task_id} for task_id in IDS]


def test_ends_of_episodes_reach_the_sampler_and_a_seed_forgets_them(
    rows: list[dict[str, Any]],
) -> None:
    env = CodingRepairEnv(rows, sampler=ADAPTIVE)
    for task_id in (IDS[0], IDS[0], IDS[1]):
        env.reset(options={"task_id": task_id})
        env.step(SUBMIT)
    assert {env.reset()[1]["task_id"] for _ in range(12)} == {IDS[1]}
    drawn = {env.reset(seed=3)[1]["task_id"], *(env.reset()[1]["task_id"] for _ in range(12))}
    assert drawn == set(IDS)
    env.close()


def test_envs_of_a_vector_env_learn_together(rows: list[dict[str, Any]]) -> None:
    envs = make_vec(2, tasks=rows, sampler=ADAPTIVE)
    try:
        envs.reset(options={"task_id": IDS[0]})
        envs.step([SUBMIT, SUBMIT])
        for _ in range(8):
            assert envs.reset()[1]["task_id"].tolist() == [IDS[1]] * 2
    finally:
        envs.close()


def test_groups_and_a_sampler_that_follows_results_exclude_each_other(
    rows: list[dict[str, Any]],
) -> None:
    with pytest.raises(InvalidArgumentError, match="may give the envs of a group different tasks"):
        make_vec(2, group_size=2, tasks=rows, sampler="adaptive")


def test_a_task_that_is_sometimes_solved_is_chosen() -> None:
    sometimes, never = (task.task_id for task in load_tasks(limit=2))
    sampler = {"name": "adaptive", "min_tries": 2, "revisit": 0}
    env = CodingRepairEnv(task_ids=[sometimes, never], sampler=sampler)
    try:
        for task_id, is_repaired in ((sometimes, True), *[(sometimes, False), (never, False)] * 2):
            env.reset(options={"task_id": task_id})
            if is_repaired:
                command = f"git apply - << 'EOF'\n{env.task.gold_patch}\nEOF"
                env.step(json.dumps({"name": "shell", "arguments": {"cmd": command}}))
            *_, info = env.step(SUBMIT)
            assert info["resolved"] is is_repaired
        chosen = {env.reset()[1]["task_id"] for _ in range(12)}
        assert chosen == {sometimes}
    finally:
        env.close()
