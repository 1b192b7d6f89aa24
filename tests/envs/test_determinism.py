"""The same seed and actions give the same bytes, in two processes and in every vector env."""

import json
import os
import subprocess
import sys
from typing import Any

import gymnasium as gym
import seeded_play
from episodes import Closing, assert_same


def test_two_processes_see_the_same_bytes() -> None:
    there = os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}
    argv = [sys.executable, seeded_play.__file__]
    with subprocess.Popen(argv, cwd="/", env=there, stdout=subprocess.PIPE, text=True) as other:
        here = seeded_play.digest()
        assert other.communicate()[0].strip() == here


def test_sync_and_async_vector_envs_are_alike(tiny_row: dict[str, Any], closing: Closing) -> None:
    name, arguments = "coding_gym:CodingRepair-v0", {"tasks": [tiny_row], "max_turns": 4}
    envs = [
        closing(gym.make_vec(name, num_envs=2, vectorization_mode=mode, **arguments))
        for mode in ("sync", "async")
    ]
    left, right = (env.reset(seed=3) for env in envs)
    assert_same(left, right)
    for action in seeded_play.ACTIONS:
        text = json.dumps(action)
        left, right = (env.step((text, text)) for env in envs)
        assert_same(left, right)
