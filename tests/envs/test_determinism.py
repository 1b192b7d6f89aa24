"""The same seed and actions give the same bytes, in two processes and in every vector env."""

import json
from typing import Any

import gymnasium as gym
import pytest
from episodes import Closing, as_text, assert_same, in_another_process, play

DROP_TIME = "sed 's/ in [0-9.]*s$//'"  # pytest prints the duration of its run
ACTIONS = [
    {"name": "shell", "arguments": {"cmd": "ls -la; git status; git log; id; env; date +%Z"}},
    {
        "name": "shell",
        "arguments": {"cmd": f"python -m pytest -q | {DROP_TIME}; echo $RANDOM > /dev/null"},
    },
    {"name": "shell", "arguments": {"cmd": "python -c 'print(hash(\"x\"), object())'; pwd"}},
    {"name": "nonsense", "arguments": {}},
    {"name": "shell", "arguments": {"cmd": "echo '#' >> README.md; git diff"}},
    {"name": "submit", "arguments": {}},
]


def play_two_episodes() -> list[str]:
    """Plays two seeded episodes of bundled tasks and returns all results as text."""
    env = gym.make("coding_gym:CodingRepair-v0", disable_env_checker=True)
    results: list[str] = []
    for seed in (0, 1):
        results += [as_text(*env.reset(seed=seed)), *play(env, map(json.dumps, ACTIONS))]
    env.close()
    return results


def test_two_processes_return_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = play_two_episodes()
    for name, value in {"PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir("/")
    assert in_another_process(play_two_episodes) == expected


def test_sync_and_async_vector_envs_are_equal(tiny_row: dict[str, Any], closing: Closing) -> None:
    name, arguments = "coding_gym:CodingRepair-v0", {"tasks": [tiny_row], "max_turns": 4}
    envs = [
        closing(gym.make_vec(name, num_envs=2, vectorization_mode=mode, **arguments))
        for mode in ("sync", "async")
    ]
    sync, async_ = (env.reset(seed=3) for env in envs)
    assert_same(sync, async_)
    for action in ACTIONS:
        text = json.dumps(action)
        sync, async_ = (env.step((text, text)) for env in envs)
        assert_same(sync, async_)
