"""Own time of `env.step` and of a vector env's infos, on the host side: one JSON line.

    python benchmarks/bench_env.py

``step_cpu_ms`` is the processor time of the thread that steps, for a shell call that only prints
a word; ``step_calls`` and ``step_files`` count the named functions of this package that it calls
and their files. ``merge_infos_ms`` is the wall time to merge the infos of 64 envs whose episodes
were just graded by 500 tests.
"""

import json
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import coding_gym
from coding_gym import Stop, TestStatus
from coding_gym.envs import CodingRepairEnv
from coding_gym.vector.batching import merge_infos

ACTION = '{"name": "shell", "arguments": {"cmd": "echo hello"}}'
PACKAGE = str(Path(coding_gym.__file__).parent)
ROUNDS, STEPS = 7, 100


def step_cpu_ms(env: CodingRepairEnv) -> float:
    """Returns the median processor time of a step."""
    times = []
    for _ in range(ROUNDS + 1):  # the first round warms up
        began = time.thread_time()
        for _ in range(STEPS):
            env.step(ACTION)
        times.append((time.thread_time() - began) / STEPS * 1000)
    return statistics.median(times[1:])


def step_calls(env: CodingRepairEnv) -> list[tuple[str, str]]:
    """Returns file and name of each function of the package that one step calls."""
    calls = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_named = not code.co_name.startswith("<")  # comprehensions and generators have no name
        if event == "call" and is_named and code.co_filename.startswith(PACKAGE):
            calls.append((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    env.step(ACTION)
    sys.setprofile(None)
    return calls


def merge_infos_ms(info: dict[str, Any]) -> float:
    """Returns the median time to merge the infos of 64 envs."""
    tests = {f"tests/test_a.py::test_{number}": TestStatus.PASSED for number in range(500)}
    infos = [info | {"grade": replace(info["grade"], pass_to_pass=tests)} for _ in range(64)]
    times = []
    for _ in range(51):
        began = time.perf_counter()
        merge_infos(enumerate(infos), len(infos))
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def main() -> None:
    """Prints the figures."""
    env = CodingRepairEnv(max_turns=10_000)
    env.reset(seed=0)
    cpu_ms = step_cpu_ms(env)
    calls = step_calls(env)
    info = env.step(Stop())[4]
    env.close()
    figures = {
        "step_cpu_ms": round(cpu_ms, 3),
        "step_calls": len(calls),
        "step_files": len({file for file, _ in calls}),
        "merge_infos_ms": round(merge_infos_ms(info), 3),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
