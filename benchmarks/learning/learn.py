"""Trains policies on the menu of repairs, and evaluates them on held-out programs.

    python benchmarks/learning/programs.py bench    # the tasks, once
    python benchmarks/learning/learn.py bench       # everything, in about three hours
    python benchmarks/learning/learn.py             # the table of the results so far

First every candidate of every task is tried, and candidates that pass the visible tests are graded.
The results are cached, so later episodes rarely wait for tests. Then the baselines play. Then each
trainer trains with each seed, two trainings at a time, in processes forked from this process:
``sb3`` is MaskablePPO of Stable-Baselines3, ``rllib`` is PPO of RLlib. The policies act on
`MenuActions` and start from random weights, with the networks of ``examples/menu_policy.py``.

The reward is the environment's, without shaping: 1 for a patch that passes the hidden tests,
else 0. The bugs are of the kinds in `KINDS`. A policy plays every held-out task once, before and
after the training. Each training adds a line to the results: settings, commit and machine; and for
each policy and program [resolved episodes, episodes, test runs].
"""

import argparse
import importlib
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from menu_episodes import Choose, TaskResult, explore, in_order, play, random_choice

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "examples"), str(ROOT / "benchmarks")]  # for menu_policy and timing
RESULTS = ROOT / "benchmarks" / "results" / "learn.jsonl"
# Kinds of bugs that one edit of the menu can revert. Other bugs, such as a removed statement, can
# seldom be repaired by an edit of the menu.
KINDS = ("argument_order", "arithmetic", "boolean", "boundary", "comparison", "constant", "slice")
SPLITS = ("train", "test")
TRAINERS: Mapping[str, str] = {"sb3": "menu_sb3", "rllib": "menu_rllib"}
BASELINES: Mapping[str, Choose] = {
    "random": random_choice,
    "candidates in order until the tests pass": in_order,
}
_NUM_PROCESSES = 2
_NUM_DRAWS = 10_000

Counts = dict[str, list[int]]
"""By program: resolved episodes, episodes, and runs of the visible tests."""


def subset(bench: Path, split: str, num_per_program: int) -> Path:
    """Writes the first tasks of `KINDS` of each program to a file, and returns its path."""
    num_tasks: Counter[str] = Counter()
    task_lines = []
    for line in (bench / f"{split}.jsonl").read_text().splitlines():
        row = json.loads(line)
        kind = row["instance_id"].rpartition("__")[2].rpartition("-")[0]
        if kind in KINDS and num_tasks[row["repo"]] < num_per_program:
            num_tasks[row["repo"]] += 1
            task_lines.append(line + "\n")
    path = bench / f"{split}-{num_per_program}.jsonl"
    path.write_text("".join(task_lines))
    return path


def counts_of(episodes: Iterable[TaskResult]) -> Counts:
    """Returns the numbers of resolved episodes, episodes and test runs by program."""
    counts: Counts = {}
    for episode in episodes:
        count = counts.setdefault(episode.program, [0, 0, 0])
        count[:] = count[0] + episode.resolved, count[1] + 1, count[2] + episode.test_runs
    return counts


def run_exploration(train: Path, test: Path) -> dict[str, Any]:
    """Tries all candidates of all tasks, and returns the line of results."""
    line: dict[str, Any] = {"trainer": "explored", "seed": None}
    for split, tasks in (("train", train), ("test", test)):
        start_s = time.perf_counter()
        results = explore(tasks)
        line[f"{split}_s"] = round(time.perf_counter() - start_s, 1)
    return {
        **line,
        "played": {"the best that 48 edits allow": counts_of(results)},
        "machine": machine(),
    }


def run_baselines(test: Path) -> dict[str, Any]:
    """Plays the untrained baselines, and returns the line of results."""
    played = {name: counts_of(play(test, choose, seed=0)) for name, choose in BASELINES.items()}
    return {"trainer": "baselines", "seed": None, "played": played, "machine": machine()}


def run_seed(train: Path, test: Path, steps: int, choice: tuple[str, int]) -> dict[str, Any]:
    """Trains once, and returns the line of results.

    Args:
        train: A file of tasks to train on.
        test: A file of tasks of other programs.
        steps: Number of training steps.
        choice: One of `TRAINERS`, and the seed of tasks, network and actions.
    """
    trainer, seed = choice
    module = importlib.import_module(TRAINERS[trainer])
    learner = module.Learner(train, 1000 * seed)
    played = {"untrained": play(test, learner.choose(is_greedy=False), seed=seed)}
    start_s = time.perf_counter()
    learner.learn(steps)
    train_s = round(time.perf_counter() - start_s, 1)
    played["sampled"] = play(test, learner.choose(is_greedy=False), seed=seed)
    played["greedy"] = play(test, learner.choose(is_greedy=True), seed=seed)
    learner.close()
    return {
        "trainer": trainer,
        "seed": seed,
        "steps": steps,
        "train_s": train_s,
        "played": {name: counts_of(episodes) for name, episodes in played.items()},
        "settings": module.SETTINGS,
        "machine": machine(*module.PACKAGES),
    }


def machine(*packages: str) -> dict[str, Any]:
    """Returns the machine, the versions and the commit of a measurement."""
    from timing import machine

    names = ("gymnasium", "numpy", *packages)
    return {**machine(), "versions": {name: version(name) for name in names}}


def report(results: Path) -> None:
    """Prints a table of the newest line of each trainer and seed."""
    lines = map(json.loads, results.read_text(encoding="utf-8").splitlines())
    runs = {(line["trainer"], line["seed"]): line for line in lines}
    policies: dict[str, list[Counts]] = {}
    for (trainer, seed), run in runs.items():
        for name, counts in run["played"].items():
            policy = name if seed is None else f"{trainer} {name}"
            policies.setdefault(policy, []).append(counts)
    print("| policy | resolved, % [95 % interval over programs] | test runs per episode |")
    print("|---|---|---|")
    for policy, seeds in sorted(policies.items()):
        mean, low, high = rate(seeds)
        programs = [count for counts in seeds for count in counts.values()]
        num_runs = sum(num for _, _, num in programs) / sum(num for _, num, _ in programs)
        print(f"| {policy} | {mean:.1f} [{low:.1f}, {high:.1f}] | {num_runs:.1f} |")


def rate(seeds: list[Counts]) -> tuple[float, float, float]:
    """Returns the resolved rate in percent, and the bounds of its 95 % interval over programs.

    The percentile bootstrap resamples whole programs. Seeds are averaged first, so the interval
    includes the variance between programs, not the variance between seeds.
    """
    table = np.array([[counts[program] for program in seeds[0]] for counts in seeds], float)
    resolved, sizes = table.mean(axis=0)[:, :2].T
    samples = np.random.default_rng(0).integers(len(sizes), size=(_NUM_DRAWS, len(sizes)))
    draws = 100 * resolved[samples].sum(1) / sizes[samples].sum(1)
    low, high = np.percentile(draws, [2.5, 97.5])
    return float(100 * resolved.sum() / sizes.sum()), float(low), float(high)


def run_all(options: argparse.Namespace) -> None:
    """Explores, plays the baselines, and trains; each result is added immediately."""
    train, test = (subset(options.bench, split, options.each) for split in SPLITS)
    append_line(options.results, run_exploration(train, test))
    append_line(options.results, run_baselines(test))
    train_once = partial(run_seed, train, test, options.steps)
    choices = product(options.trainers, options.seeds)
    # Forked processes inherit the cache; each trains once.
    with multiprocessing.get_context("fork").Pool(_NUM_PROCESSES, maxtasksperchild=1) as pool:
        for line in pool.imap_unordered(train_once, choices):
            append_line(options.results, line)


def append_line(results: Path, line: Mapping[str, Any]) -> None:
    """Adds a line to the file of results."""
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def main() -> None:
    """Runs everything if a bench is named, and prints the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bench", type=Path, nargs="?", help="bench folder; default: table only")
    parser.add_argument(
        "--trainers", nargs="*", choices=TRAINERS, default=list(TRAINERS), help="(default all)"
    )
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2], help="(default 0 1 2)")
    parser.add_argument("--steps", type=int, default=20_000, help="per training (default 20000)")
    parser.add_argument("--each", type=int, default=10, help="tasks per program (default 10)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of results")
    options = parser.parse_args()
    if options.bench is not None:
        run_all(options)
    report(options.results)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the networks are too small for more threads
    main()
