"""The fixtures with which cheats are played: as patches, in episodes, and against commands."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import pytest
from cart_task import TASK
from cheating_episodes import HARMLESS
from grading_fixtures import grade_tree, store

__all__ = ["grade_tree", "store"]

Play = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def env() -> Iterator[gym.Env[Any, Any]]:
    env: gym.Env[Any, Any] = gym.make("coding_gym:CodingRepair-v0", tasks=[TASK.to_row()])
    yield env
    env.close()


@pytest.fixture
def play(env: gym.Env[Any, Any]) -> Play:
    """Plays an episode of some shell scripts and a harmless change; returns its grade."""

    def run(*scripts: str) -> dict[str, Any]:
        env.reset()
        for command in (*scripts, HARMLESS):
            env.step(json.dumps({"name": "shell", "arguments": {"cmd": command}}))
        info = env.step('{"name": "submit", "arguments": {}}')[4]
        assert not info["error"], info["error"]
        verdict: dict[str, Any] = info["grade"].to_json()
        return verdict

    return run
