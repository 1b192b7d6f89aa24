"""The same seed and actions give the same bytes, in two processes and in every vector env."""

import json
from typing import Any

import gymnasium as gym
import pytest
from episodes import Closing, as_text, assert_same, in_another_process, play

TIMELESS = "sed 's/ in [0-9.]*s$//'"  # a test runner prints how long it took
ACTIONS = [
    {"name": "shell", "arguments": {"cmd": "ls -la; git status; git log; id; env; date +%Z"}},
    {
        "name": "shell",
        "arguments": {"cmd": f"python -m pytest -q | {TIMELESS}; echo $RANDOM > /dev/null"},
    },
    {"name": "shell", "arguments": {"cmd": "python -c 'print(hash(\"x\"), object())'; pwd"}},
    {"name": "nonsense", "arguments": {}},
    {"name": "shell", "arguments": {"cmd": "echo '#' >> README.md; git diff"}},
    {"name": "submit", "arguments": {}},
]


def played() -> list[str]:
    """Plays two seeded episodes of bundled tasks; returns everything that came back."""
    env = gym.make("coding_gym:CodingRepair-v0", disable_env_checker=True)
    results: list[str] = []
    for seed in (0, 1):
        results += [as_text(*env.reset(seed=seed)), *play(env, map(json.dumps, ACTIONS))]
    env.close()
    return results


def test_two_processes_see_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    here = played()
    for name, value in {"PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir("/")
    assert in_another_process(played) == here


def test_sync_and_async_vector_envs_are_equal(tiny_row: dict[str, Any], closing: Closing) -> None:
    name, arguments = "coding_gym:CodingRepair-v0", {"tasks": [tiny_row], "max_turns": 4}
    envs = [
        closing(gym.make_vec(name, num_envs=2, vectorization_mode=mode, **arguments))
        for mode in ("sync", "async")
    ]
    left, right = (env.reset(seed=3) for env in envs)
    assert_same(left, right)
    for action in ACTIONS:
        text = json.dumps(action)
        left, right = (env.step((text, text)) for env in envs)
        assert_same(left, right)
