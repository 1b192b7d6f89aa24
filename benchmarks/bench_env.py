"""The cost of the env beyond its sandbox: steps, resets, infos, the import.

Run it by ``python benchmarks/bench_env.py``, on a machine that does nothing else. It prints a table
(``--json``: one JSON line), appends the line to ``.bench/env.jsonl`` and draws
``env.png`` beside it. Works that are compared run in turn, round by round; figures are medians.

The exit code is 1 where a figure missed its target.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import gymnasium as gym
from figures import Bench, Figure, interleaved, measure, median, parser, ratio, report, timed_ms
from sandbox_resets import FEW, MANY, SIZES, repositories
from sandbox_steps import BARE

from coding_gym import Stop, TestStatus, load_tasks
from coding_gym.vector.batching import merge_infos

TRUE = json.dumps({"name": "shell", "arguments": {"cmd": "true"}})


@contextmanager
def env_of(**options: Any) -> Iterator[gym.Env[Any, Any]]:
    """Gives an env after its first reset, which no limit ends."""
    env = gym.make(
        "coding_gym:CodingRepair-v0", max_turns=10**6, disable_env_checker=True, **options
    )
    env.reset(seed=0)
    try:
        yield env
    finally:
        env.close()


def steps(rounds: int) -> list[Figure]:
    """Times a step that does nothing against a bare subprocess, and its thread's CPU time."""
    with env_of() as env:
        works: dict[str, Callable[[], object]] = {
            "bare": lambda: subprocess.run(BARE, check=True),
            "step": lambda: env.step(TRUE),
        }
        took = interleaved(works, rounds)
        cpu = []
        for _ in range(rounds):
            began = time.thread_time()
            env.step(TRUE)
            cpu.append((time.thread_time() - began) * 1e3)
    return [
        ratio('env.step(shell("true")) / bare subprocess', took["step"], took["bare"], 1.5),
        median('env.step(shell("true"))', took["step"], "ms", None),
        median("CPU of the thread that steps", cpu, "ms", None),
    ]


def resets(rounds: int) -> list[Figure]:
    """Times resets with a first command: of all bundled tasks, and by the repository's size."""
    few, slowest = max(3, rounds // 20), 0.0
    with env_of() as env:
        for task in load_tasks("bundled"):
            options = {"task_id": task.task_id}
            samples = [timed_ms(_restart(env, options)) for _ in range(few + 1)]
            slowest = max(slowest, sorted(samples[1:])[few // 2])  # the first makes the template
        took = interleaved({"env": _restart(env, None)}, rounds)
    rows = repositories().rows
    with env_of(tasks=[rows[FEW]]) as small, env_of(tasks=[rows[MANY]]) as large:
        by_size = interleaved({"few": _restart(small), "many": _restart(large)}, rounds)
    return [
        median("env.reset + first command", took["env"], "ms", 10),
        Figure(name="the slowest of the bundled tasks", value=round(slowest, 2), unit="ms"),
        ratio(f"env.reset + first command, {SIZES}", by_size["many"], by_size["few"], 1.2),
    ]


def _restart(env: gym.Env[Any, Any], options: dict[str, Any] | None = None) -> Callable[[], object]:
    def once() -> None:
        env.reset(options=options)
        env.step(TRUE)

    return once


def infos(rounds: int) -> list[Figure]:
    """Times the merge of what 64 envs say whose episodes were just graded by 500 tests."""
    tests = {f"tests/test_a.py::test_{number}": TestStatus.PASSED for number in range(500)}
    with env_of() as env:
        info = env.step(Stop("benchmark"))[4]
    ended = [info | {"grade": replace(info["grade"], pass_to_pass=tests)} for _ in range(64)]
    took = interleaved({"merge": lambda: merge_infos(enumerate(ended), len(ended))}, rounds)
    return [median("infos of 64 graded episodes merged", took["merge"], "ms", None)]


def imports(rounds: int) -> list[Figure]:
    """Times the import of this package against Gymnasium's, each in a process of its own."""
    codes = {"nothing": "pass", "theirs": "import gymnasium", "ours": "import coding_gym"}

    def start(code: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    took = interleaved({name: start(code) for name, code in codes.items()}, max(5, rounds // 10))
    empty = sorted(took["nothing"])[len(took["nothing"]) // 2]
    ours, theirs = ([ms - empty for ms in took[name]] for name in ("ours", "theirs"))
    return [ratio("import coding_gym / import gymnasium", ours, theirs, 2)]


BENCHES: dict[str, Bench] = {
    "steps": steps,
    "resets": resets,
    "infos": infos,
    "imports": imports,
}


def main() -> None:
    """Measures what was asked for."""
    options = parser(__doc__, BENCHES).parse_args()
    report("env", measure(BENCHES, options), options, rounds=options.rounds)


if __name__ == "__main__":
    main()
