"""Continues a saved snapshot in a process of its own; prints what the steps give, as JSON."""

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
from episodes import as_text

import coding_gym
from coding_gym.vector.sub_envs import make_envs


def wrapped(rows: list[dict[str, Any]]) -> gym.Env[Any, Any]:
    """Makes the env of the test, in wrappers with a state."""
    parts = [{"name": "patch_similarity", "weight": 0.2}, {"name": "visible_tests", "weight": 0.01}]
    wrappers = [
        {"name": "TokenBudget", "kwargs": {"max_tokens": 60_000}},
        {"name": "ShapedReward", "kwargs": {"parts": parts}},
    ]
    return make_envs(1, wrappers, {"tasks": rows, "sampler": "shuffled", "max_turns": 40})[0]


def continued(env: gym.Env[Any, Any], actions: list[str]) -> list[Any]:
    """Plays actions and starts the next episode; returns the results."""
    steps = [as_text(*env.step(action)) for action in actions]
    return [*steps, as_text(*env.reset())]


if __name__ == "__main__":
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    resumed = wrapped(request["rows"])
    snapshot = coding_gym.EnvSnapshot.load(request["path"], resumed)
    coding_gym.restore(resumed, snapshot)
    print(json.dumps(continued(resumed, request["actions"])))  # noqa: T201
    resumed.close()
