"""Measures steps per second and memory of one kind of vector env, in a separate process.

python benchmarks/vector.py coding_gym 64    # prints a JSON object
"""

import json
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

from coding_gym.vector import CodingRepairVectorEnv

_ACTION = json.dumps({"name": "shell", "arguments": {"cmd": "true"}})
_ROUNDS = 7


def _single() -> gym.Env[Any, Any]:
    return gym.make("coding_gym:CodingRepair-v0", disable_env_checker=True, max_turns=10**6)


KINDS: Mapping[str, Callable[[int], VectorEnv[Any, Any, Any]]] = {
    "coding_gym": lambda num: CodingRepairVectorEnv(num, max_turns=10**6),
    "Gymnasium's AsyncVectorEnv": lambda num: AsyncVectorEnv([_single] * num),
    "one env in a loop": lambda _: SyncVectorEnv([_single]),
}
"""Makers of vector envs, by the name of the kind."""


def measure(kind: str, num_envs: int) -> dict[str, float]:
    """Returns steps per second (median of seven rounds), and the PSS of all processes in MiB."""
    env = KINDS[kind](num_envs)
    env.reset(seed=0)
    actions = [_ACTION] * env.num_envs
    num_steps = 10 if env.num_envs > 1 else 100
    rates = []
    for _ in range(_ROUNDS + 1):  # the first round is a warm-up
        start = time.perf_counter()
        for _ in range(num_steps):
            env.step(actions)
        rates.append(num_steps * env.num_envs / (time.perf_counter() - start))
    pss_mib = sum(map(_pss_kib, _tree(os.getpid()))) / 1024
    env.close()
    return {"steps_per_s": statistics.median(rates[1:]), "pss_mib": pss_mib}


def _tree(pid: int) -> Iterator[int]:
    """Yields a process and all its descendants."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):  # the thread has ended
            for child in (task / "children").read_text().split():
                yield from _tree(int(child))


def _pss_kib(pid: int) -> int:
    """Returns a process's proportional set size; 0 if it has ended or cannot be read."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return 0


if __name__ == "__main__":
    logging.getLogger("coding_gym").setLevel(logging.ERROR)
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
