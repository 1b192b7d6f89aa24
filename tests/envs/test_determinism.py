"""The same seed and actions give the same bytes, in two processes and in every vector env."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

ACTIONS = [
    {"name": "shell", "arguments": {"cmd": "ls -la; git status; git log; id; env; date +%Z"}},
    {"name": "shell", "arguments": {"cmd": "python -m pytest -q; echo $RANDOM > /dev/null"}},
    {"name": "shell", "arguments": {"cmd": "python -c 'print(hash(\"x\"), object())'; pwd"}},
    {"name": "nonsense", "arguments": {}},
    {"name": "shell", "arguments": {"cmd": "echo '#' >> README.md; git diff"}},
    {"name": "submit", "arguments": {}},
]


def digest() -> str:
    """Plays two seeded episodes of bundled tasks and hashes everything that came back."""
    env = gym.make("coding_gym:CodingRepair-v0", disable_env_checker=True)
    seen = hashlib.sha256()
    for seed in (0, 1):
        observation, info = env.reset(seed=seed)
        steps: list[Any] = [info]
        seen.update(observation["input_ids"].tobytes() + observation["attention_mask"].tobytes())
        for action in ACTIONS:
            observation, reward, terminated, truncated, info = env.step(json.dumps(action))
            seen.update(observation["input_ids"].tobytes())
            seen.update(observation["attention_mask"].tobytes())
            steps.append([reward, terminated, truncated, info])
        seen.update(json.dumps(steps, sort_keys=True).encode())
    env.close()
    return seen.hexdigest()


def test_two_processes_see_the_same_bytes() -> None:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); " + (
        "from test_determinism import digest; print(digest())"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout.strip() == runs[1].stdout.strip() == digest()


def assert_same(left: Any, right: Any) -> None:
    """Compares what two vector envs gave, arrays in dicts in tuples included."""
    assert type(left) is type(right)
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, tuple) or (isinstance(left, np.ndarray) and left.dtype == object):
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    elif isinstance(left, np.ndarray):
        np.testing.assert_array_equal(left, right)
    else:
        assert left == right


def test_sync_and_async_vector_envs_run_it_alike(tiny_row: dict[str, Any]) -> None:
    envs = [
        gym.make_vec(
            "coding_gym:CodingRepair-v0",
            num_envs=2,
            vectorization_mode=mode,
            tasks=[tiny_row],
            max_turns=4,
        )
        for mode in ("sync", "async")
    ]
    try:
        left, right = (env.reset(seed=3) for env in envs)
        assert_same(left, right)
        for action in ACTIONS:
            text = json.dumps(action)
            left, right = (env.step((text, text)) for env in envs)
            assert_same(left, right)
    finally:
        for env in envs:
            env.close()
