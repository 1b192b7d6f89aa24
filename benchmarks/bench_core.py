"""Speed of the main path, as medians and as ratios against a bare subprocess in the same run.

Run it by ``python benchmarks/bench_core.py``. It prints a table, and one JSON line with everything
when ``--json`` is given. Machines are noisy: compare ratios, not milliseconds.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym

from coding_gym import load_tasks
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.workspace import TemplateStore

TRUE = '{"name": "shell", "arguments": {"cmd": "true"}}'
BARE = ["bash", "-c", "true"]


def timed_ms(work: Callable[[], object]) -> float:
    """Returns how long one call took, in milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def summary(samples: list[float]) -> dict[str, float]:
    """Returns median and 10th to 90th percentile, in milliseconds."""
    cuts = statistics.quantiles(samples, n=10)
    return {
        "median_ms": round(statistics.median(samples), 3),
        "p10_ms": round(cuts[0], 3),
        "p90_ms": round(cuts[-1], 3),
    }


def bench_steps(rounds: int) -> dict[str, dict[str, float]]:
    """Times a bare subprocess and ``env.step`` in turn, so that noise hits both."""
    env = gym.make("CodingRepair-v0", max_turns=rounds + 10, disable_env_checker=True)
    env.reset(seed=0)
    bare: list[float] = []
    step: list[float] = []
    for _ in range(rounds):
        bare.append(timed_ms(lambda: subprocess.run(BARE, check=True)))
        step.append(timed_ms(lambda: env.step(TRUE)))
    env.close()
    return {"bare subprocess": summary(bare[5:]), 'env.step(shell("true"))': summary(step[5:])}


def bench_resets(rounds: int) -> dict[str, dict[str, float]]:
    """Times ``reset`` with a first command on every bundled task."""
    env = gym.make("CodingRepair-v0", disable_env_checker=True)

    def reset(task_id: str) -> None:
        env.reset(options={"task_id": task_id})
        env.step(TRUE)

    figures = {}
    for task in load_tasks("bundled"):
        reset(task.task_id)  # builds the template
        samples = [timed_ms(lambda: reset(task.task_id)) for _ in range(rounds)]  # noqa: B023 - called at once
        figures[task.task_id] = summary(samples)
    env.close()
    return figures


def bench_grading(rounds: int) -> dict[str, dict[str, float]]:
    """Times grading the gold patch of every bundled task."""
    store, figures = TemplateStore(), {}
    for task in load_tasks("bundled"):
        template = store.get(task)
        samples = [
            timed_ms(lambda: grade(task, template, Patch(task.gold_patch)))  # noqa: B023 - called at once
            for _ in range(rounds)
        ]
        figures[task.task_id] = summary(samples)
    return figures


def bench_import(rounds: int) -> dict[str, dict[str, float]]:
    """Times importing Gymnasium and this package, each in a process of its own, in turn."""
    names = ("gymnasium", "coding_gym")
    samples: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            argv = [sys.executable, "-c", f"import {name}"]
            samples[name].append(timed_ms(lambda: subprocess.run(argv, check=True)))  # noqa: B023 - called at once
    return {f"import {name}": summary(values) for name, values in samples.items()}


def bench_empty_start(rounds: int) -> float:
    """Returns the median start of an interpreter that imports nothing, in milliseconds."""
    argv = [sys.executable, "-c", "pass"]
    return statistics.median(
        timed_ms(lambda: subprocess.run(argv, check=True)) for _ in range(rounds)
    )


def machine() -> dict[str, Any]:
    """Returns what the figures depend on."""
    head = Path(__file__).parent.parent / ".git"
    commit = subprocess.run(
        ["git", "--git-dir", str(head), "rev-parse", "--short", "HEAD"],  # noqa: S607 - the user's git
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return {
        "commit": commit,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "root": os.geteuid() == 0,
    }


def show(title: str, figures: dict[str, dict[str, float]]) -> None:
    """Prints one table."""
    print(f"\n{title}\n{'':<36}{'median':>10}{'p10':>10}{'p90':>10}  ms")
    for name, row in figures.items():
        print(
            f"{name:<36}" + "".join(f"{row[k]:>10.2f}" for k in ("median_ms", "p10_ms", "p90_ms"))
        )


def main() -> None:
    """Runs everything and prints it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="steps timed (default 200)")
    parser.add_argument("--json", action="store_true", help="print one JSON line at the end")
    options = parser.parse_args()
    few = max(10, options.rounds // 10)
    steps, resets = bench_steps(options.rounds), bench_resets(few)
    gradings, imports = bench_grading(max(3, few // 4)), bench_import(few)
    start = bench_empty_start(few)
    bare, step = (row["median_ms"] for row in steps.values())
    ours, theirs = (
        imports[f"import {n}"]["median_ms"] - start for n in ("coding_gym", "gymnasium")
    )
    ratios = {
        'env.step(shell("true")) / bare subprocess': round(step / bare, 2),
        "slowest reset with a first command, ms": max(r["median_ms"] for r in resets.values()),
        "import coding_gym / import gymnasium": round(ours / theirs, 2),
    }
    show("steps", steps)
    show("reset with a first command", resets)
    show("grading the gold patch", gradings)
    show(f"imports (an empty interpreter starts in {start:.1f} ms)", imports)
    print()
    for name, value in ratios.items():
        print(f"{name}: {value}")
    if options.json:
        figures = {"steps": steps, "resets": resets, "grading": gradings, "imports": imports}
        print(json.dumps({"machine": machine(), "ratios": ratios, **figures}))


if __name__ == "__main__":
    main()
