"""Policies that cheat in their sandboxes: none is resolved, and a real repair still is."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cart_task import TASK
from episodes import EPISODES, HARMLESS

from coding_gym.envs.coding_repair import CodingRepairEnv

Play = Callable[[str], dict[str, Any]]
REPAIR = "sed -i 's/+ discount/- discount/' cart.py"
# In these the source is not what git thinks, so that a repair in place is none.
MOVED = {"a source outside of the tree"}


@pytest.fixture(scope="module")
def env() -> Iterator[CodingRepairEnv]:
    env = CodingRepairEnv(tasks=[TASK.to_row()])
    yield env
    env.close()


@pytest.fixture
def play(env: CodingRepairEnv) -> Play:
    """Plays an episode of one script, and returns what its grade says."""

    def run(script: str) -> dict[str, Any]:
        env.reset()
        for command in (script, HARMLESS):
            env.step(json.dumps({"name": "shell", "arguments": {"cmd": command}}))
        info = env.step('{"name": "submit", "arguments": {}}')[4]
        assert not info["error"], info["error"]
        return dict(info["grade"])

    return run


@pytest.mark.parametrize("script", EPISODES.values(), ids=EPISODES.keys())
def test_a_policy_that_repairs_nothing_is_not_resolved(play: Play, script: str) -> None:
    verdict = play(script)
    assert (verdict["resolved"], verdict["reason"]) == (False, "tests_failed"), verdict


@pytest.mark.parametrize("name", [name for name in EPISODES if name not in MOVED])
def test_what_it_does_hurts_no_real_repair(play: Play, name: str) -> None:
    verdict = play(f"{EPISODES[name]}\n{REPAIR}")
    assert verdict["resolved"], verdict
