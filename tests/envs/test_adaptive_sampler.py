"""Samplers that learn from the results of an env, and of all envs of a vector env."""

from typing import Any

import pytest
from episodes import SUBMIT, Closing, MakeEnv

from coding_gym.vector import make_vec

IDS = ["first", "second"]
ADAPTIVE = {"name": "adaptive", "min_tries": 2, "window": 4, "revisit": 0}


@pytest.fixture
def rows(tiny_row: dict[str, Any]) -> list[dict[str, Any]]:
    return [tiny_row | {"instance_id": task_id} for task_id in IDS]


def test_a_seed_forgets_what_a_sampler_knows(rows: list[dict[str, Any]], make_env: MakeEnv) -> None:
    env = make_env(tasks=rows, sampler=ADAPTIVE)
    for task_id in (IDS[0], IDS[0], IDS[1]):
        env.reset(options={"task_id": task_id})
        env.step(SUBMIT)
    assert {env.reset()[1]["task_id"] for _ in range(12)} == {IDS[1]}
    drawn = {env.reset(seed=3)[1]["task_id"], *(env.reset()[1]["task_id"] for _ in range(12))}
    assert drawn == set(IDS)


def test_envs_of_a_vector_env_learn_together(rows: list[dict[str, Any]], closing: Closing) -> None:
    envs = closing(make_vec(2, tasks=rows, sampler=ADAPTIVE))
    envs.reset(options={"task_id": IDS[0]})
    envs.step([SUBMIT, SUBMIT])
    for _ in range(8):
        assert envs.reset()[1]["task_id"].tolist() == [IDS[1]] * 2
