"""Samplers that learn from the results of an env, and of all envs of a vector env."""

import json
from typing import Any

import pytest

from coding_gym.envs import CodingRepairEnv
from coding_gym.errors import InvalidArgumentError
from coding_gym.tasks import load_tasks
from coding_gym.vector import make_vec

SUBMIT = json.dumps({"name": "submit", "arguments": {}})
IDS = [task.task_id for task in load_tasks(limit=2)]
ADAPTIVE = {"name": "adaptive", "min_tries": 2, "window": 4, "revisit": 0}


def dropped(env: Any) -> Any:
    return env._sampler.dropped()


def test_ends_of_episodes_reach_the_sampler_and_a_seed_forgets_them() -> None:
    env = CodingRepairEnv(task_ids=IDS, sampler=ADAPTIVE)
    for task_id in (IDS[0], IDS[0], IDS[1]):
        env.reset(options={"task_id": task_id})
        env.step(SUBMIT)
    assert dropped(env) == (IDS[0],)
    _, info = env.reset()
    assert info["task_id"] == IDS[1]
    env.reset(seed=3)
    assert dropped(env) == ()
    env.close()


def test_envs_of_a_vector_env_learn_together() -> None:
    envs = make_vec(2, task_ids=IDS, sampler=ADAPTIVE)
    try:
        envs.reset(options={"task_id": IDS[0]})
        envs.step([SUBMIT, SUBMIT])
        assert [dropped(env.unwrapped) for env in envs.envs] == [(IDS[0],)] * 2
    finally:
        envs.close()


def test_groups_and_a_sampler_that_follows_results_exclude_each_other() -> None:
    with pytest.raises(InvalidArgumentError, match="may give the envs of a group different tasks"):
        make_vec(2, group_size=2, task_ids=IDS, sampler="adaptive")
