"""What PPO learns of the menu on some programs, played on programs that it never saw.

    python benchmarks/learning/programs.py --out bench                       # made once
    python benchmarks/learning/menu_ppo.py bench                             # learns nothing
    python benchmarks/learning/menu_ppo.py bench --trainer sb3 --seed 0      # trains, plays
    python benchmarks/learning/menu_ppo.py --report                          # table and picture

The trainer is MaskablePPO of Stable-Baselines3 (``sb3``) or PPO of RLlib (``rllib``). Each run but
the report keeps a line. Seeds are independent, so two may run at the same time
(``OMP_NUM_THREADS=1`` each). The reward is the environment's own: 1 for a patch that passes the
hidden tests, else 0, no shaping. A policy plays every held-out task once.
"""

import argparse
import importlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from git import Repo
from menu_episodes import (
    Choose,
    difference,
    first_entry,
    in_order,
    play,
    random_choice,
    rate,
)

import coding_gym
from coding_gym.evaluation import evaluate
from coding_gym.evaluation import report as evaluation_report

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "menu_ppo.jsonl"
PICTURE = RESULTS.with_suffix(".png")
TRAINERS = ("sb3", "rllib")
TRAINED = ("untrained", "sampled", "greedy", "greedy, shuffled menu")
BASELINES: Mapping[str, Choose] = {
    "random": random_choice,
    "first entry": first_entry,
    "in order": in_order,
}


def run_seed(bench: Path, trainer: str, seed: int, steps: int) -> dict[str, Any]:
    """Trains on one seed, and returns what is reported of it."""
    train, test = bench / "train.jsonl", bench / "test.jsonl"
    chosen = importlib.import_module(f"menu_{trainer}")
    learner = chosen.Learner(train, 1000 * seed)
    untrained = play(test, learner.choose(is_greedy=False), seed=seed)
    began = time.perf_counter()
    curve = learner.learn(steps)
    train_s = time.perf_counter() - began
    sampled, greedy = (learner.choose(is_greedy=is_greedy) for is_greedy in (False, True))
    found = (
        untrained,
        play(test, sampled, seed=seed),
        play(test, greedy, seed=seed),
        play(test, greedy, seed=seed, is_shuffled=True),
    )
    learner.close()
    return {
        "trainer": trainer,
        "seed": seed,
        "steps": steps,
        "train_s": round(train_s, 1),
        "seconds": round(time.perf_counter() - began, 1),
        "curve": curve,
        "played": {name: list(map(asdict, p)) for name, p in zip(TRAINED, found, strict=True)},
        "num_train": _num_tasks(train),
        "settings": chosen.SETTINGS,
        "machine": machine(*chosen.PACKAGES),
    }


def run_baselines(bench: Path) -> dict[str, Any]:
    """Plays the policies that learn nothing, and `template-repair` without a limit of turns."""
    test = bench / "test.jsonl"
    found = {name: list(map(asdict, play(test, c, seed=0))) for name, c in BASELINES.items()}
    with tempfile.TemporaryDirectory() as folder:
        run = evaluate("template-repair", Path(folder, "run"), tasks=str(test), concurrency=2)
        searched = evaluation_report(run).episodes
    programs = {task.task_id: task.repo for task in coding_gym.load_tasks(str(test))}
    found["template-repair"] = [
        {
            "task_id": one["task_id"],
            "program": programs[one["task_id"]],
            "resolved": bool(one["resolved"]),
            "test_runs": None,
        }
        for one in searched
    ]
    return {"trainer": None, "seed": None, "played": found, "machine": machine()}


def _num_tasks(tasks: Path) -> dict[str, int]:
    programs = [task.repo for task in coding_gym.load_tasks(str(tasks))]
    return {"tasks": len(programs), "programs": len(set(programs))}


def machine(*packages: str) -> dict[str, Any]:
    """Returns what the figures depend on."""
    repository = Repo(ROOT)
    changed = "+changes" if repository.is_dirty(untracked_files=True) else ""
    return {
        "commit": repository.head.commit.hexsha[:7] + changed,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("gymnasium", "numpy", *packages)},
    }


def report() -> None:
    """Prints what the newest line of each trainer and seed says, and draws it."""
    lines = map(json.loads, RESULTS.read_text(encoding="utf-8").splitlines())
    runs = {(line["trainer"], line["seed"]): line for line in lines}
    played: dict[str, list[Mapping[str, Any]]] = {}
    for (trainer, _), run in runs.items():
        for name, episodes in run["played"].items():
            played.setdefault(f"{trainer} {name}" if trainer else name, []).extend(episodes)
    outcomes = {name: _by_task(episodes) for name, episodes in played.items()}
    rates = {name: rate(found) for name, found in outcomes.items()}
    test = outcomes["random"]
    print(f"{len(test)} held-out tasks of {len({program for program, _ in test})} programs\n")
    print(f"{'resolved, % [95 % interval over programs]':<56}{'above random, points':<24}test runs")
    for name, found in outcomes.items():
        counts = [episode["test_runs"] for episode in played[name]]
        mean = "many" if None in counts else f"{sum(counts) / len(counts):.1f}"
        more = _shown(difference(found, test)) if found is not test else ""
        print(f"{name:<32}{_shown(rates[name]):<24}{more:<24}{mean}")
    trained = {key: run for key, run in runs.items() if key[0]}
    for trainer in {key[0] for key in trained}:
        for name in ("first entry", "in order", "template-repair", f"{trainer} untrained"):
            more = _shown(difference(outcomes[f"{trainer} greedy"], outcomes[name]))
            print(f"{trainer} greedy above {name}: {more}")
    for (trainer, seed), run in trained.items():
        greedy = [one["resolved"] for one in run["played"]["greedy"]]
        print(
            f"{trainer}, seed {seed}: greedy {100 * sum(greedy) / len(greedy):.1f} %, "
            f"{run['steps']} steps in {run['train_s'] / 60:.1f} min"
        )
    _draw(trained, rates)
    print(f"drawn: {PICTURE.relative_to(ROOT)}")


def _by_task(episodes: list[Mapping[str, Any]]) -> dict[tuple[str, str], list[bool]]:
    found: dict[tuple[str, str], list[bool]] = {}
    for episode in episodes:
        place = episode["program"], episode["task_id"]
        found.setdefault(place, []).append(episode["resolved"])
    return found


def _shown(found: tuple[float, float, float]) -> str:
    mean, low, high = (100 * value for value in found)
    return f"{mean:.1f} [{low:.1f}, {high:.1f}]"


def _draw(
    trained: Mapping[tuple[str, int], Any], rates: Mapping[str, tuple[float, float, float]]
) -> None:
    pyplot = importlib.import_module("matplotlib.pyplot")
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for (trainer, seed), run in sorted(trained.items()):
        parts = [part for part in run["curve"] if part["episodes"]]
        steps = [part["until"] for part in parts]
        shares = [100 * part["resolved"] for part in parts]
        left.plot(steps, shares, marker=".", label=f"{trainer}, seed {seed}")
    left.set(xlabel="environment steps", ylabel="resolved, %", title="in training", ylim=(0, None))
    left.legend()
    names = list(rates)
    means = [100 * rates[name][0] for name in names]
    errors = [
        [mean - 100 * rates[name][1] for name, mean in zip(names, means, strict=True)],
        [100 * rates[name][2] - mean for name, mean in zip(names, means, strict=True)],
    ]
    right.barh(names, means, xerr=errors, capsize=3)
    right.invert_yaxis()
    right.set(xlabel="resolved, %, 95 % interval", title="on programs never seen", xlim=(0, 100))
    figure.savefig(PICTURE, dpi=120)


def main() -> None:
    """Runs one seed or the baselines, or prints the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bench", type=Path, nargs="?", help="the folder of programs.py")
    parser.add_argument("--trainer", choices=TRAINERS, help="train; without it, play baselines")
    parser.add_argument("--seed", type=int, default=0, help="of the training (default 0)")
    parser.add_argument("--steps", type=int, default=20_000, help="of training (default 20000)")
    parser.add_argument("--report", action="store_true", help="print and draw the results so far")
    options = parser.parse_args()
    if options.report:
        report()
        return
    if options.bench is None:
        parser.error("name the folder of the bench, or --report")
    if options.trainer is None:
        result = run_baselines(options.bench)
    else:
        result = run_seed(options.bench, options.trainer, options.seed, options.steps)
    with RESULTS.open("a", encoding="utf-8") as file:  # one write: seeds run at the same time
        file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
