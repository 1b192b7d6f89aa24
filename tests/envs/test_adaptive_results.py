"""The adaptive sampler of an env gives what is sometimes solved, and not what never is."""

import json

from coding_gym.envs import CodingRepairEnv
from coding_gym.tasks import load_tasks

SUBMIT = '{"name": "submit", "arguments": {}}'


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
