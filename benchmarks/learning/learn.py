"""What policies learn on some programs, played on programs that they never saw.

    python benchmarks/learning/programs.py --out bench    # the tasks, once
    python benchmarks/learning/learn.py bench             # everything, in many hours
    python benchmarks/learning/learn.py --report          # table and picture

First every candidate of every task is tried, and those that pass the visible tests are graded (for
the language model also those that do not, of its list), so that hardly a run that follows waits for
a test; the seconds of this are kept. Then policies that learn
nothing play. Then each trainer trains with each seed, two runs at a time, in processes that are
forked from this one:

- ``sb3``: MaskablePPO of Stable-Baselines3 on `MenuActions`, from random weights.
- ``rllib``: PPO of RLlib on `MenuActions`, from random weights.
- ``language_model``: imitation, then GRPO of TRL, of a small language model that reads and writes
  text. See ``language_model.py``.

The reward is the environment's own: 1 for a patch that passes the hidden tests, else 0, no shaping.
The tasks are of `KINDS`. A policy plays every held-out task once. Each run adds a line to the
results.

`template-repair`, which tries up to a thousand candidates and pairs of them, takes minutes for a
task: ``--template-repair 2`` plays it on two held-out tasks of each program.
"""

import argparse
import importlib
import json
import multiprocessing
import os
import platform
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import version
from itertools import product
from multiprocessing import connection
from pathlib import Path
from typing import Any

from git import Repo
from menu_episodes import (
    NUM_CANDIDATES,
    Choose,
    Outcomes,
    difference,
    explore,
    first_entry,
    in_order,
    play,
    random_choice,
    rate,
)

import coding_gym
from coding_gym.evaluation import evaluate
from coding_gym.evaluation import report as evaluation_report
from coding_gym.process_cache import load_results, save_results

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "learn.jsonl"
PICTURE = RESULTS.with_suffix(".png")
# Bugs that an edit of the catalogue can take back; others, such as a removed statement, can seldom
# be repaired by a choice among edits.
KINDS = ("argument_order", "arithmetic", "boolean", "boundary", "comparison", "constant", "slice")
SPLITS = ("train", "test")
NUM_LISTED = 12  # candidates that the language model reads
TRAINERS: Mapping[str, str] = {
    "sb3": "menu_sb3",
    "rllib": "menu_rllib",
    "language_model": "language_model",
}
TRAINED = ("untrained", "imitated", "sampled", "greedy", "greedy, shuffled menu")
BASELINES: Mapping[str, Choose] = {
    "random": random_choice,
    "first entry": first_entry,
    "in order": in_order,
}


def subset(bench: Path, split: str, each: int) -> Path:
    """Writes the first tasks of each program, of `KINDS`, to a file, and returns it."""
    programs: Counter[str] = Counter()
    chosen = []
    for line in (bench / f"{split}.jsonl").read_text().splitlines():
        row = json.loads(line)
        kind = row["instance_id"].rpartition("__")[2].rpartition("-")[0]
        if kind in KINDS and programs[row["repo"]] < each:
            programs[row["repo"]] += 1
            chosen.append(line + "\n")
    place = bench / f"{split}-{each}.jsonl"
    place.write_text("".join(chosen))
    return place


def run_exploration(train: Path, test: Path, num_graded: int) -> dict[str, Any]:
    """Tries all candidates of all tasks, and returns what they are worth.

    Args:
        train: A file of tasks to train on.
        test: A file of tasks of other programs.
        num_graded: As `explore` takes it, of the tasks to train on.
    """
    found: dict[str, Any] = {"trainer": "explored", "seed": None, "machine": machine()}
    for split, tasks in (("train", train), ("test", test)):
        began = time.perf_counter()
        explored = explore(tasks, num_graded if split == "train" else 0)
        found[split] = list(map(asdict, explored))
        found[f"{split}_s"] = round(time.perf_counter() - began, 1)
        share = sum(bool(one.resolved) for one in explored) / len(explored)
        print(
            f"{split}: {len(explored)} tasks in {found[f'{split}_s']} s, a candidate resolves "
            f"{share:.1%}",
            flush=True,
        )
    return found


def run_seed(train: Path, test: Path, trainer: str, seed: int, settings: Any) -> dict[str, Any]:
    """Trains on one seed, and returns what is reported of it.

    Args:
        train: A file of tasks to train on.
        test: A file of tasks of other programs.
        trainer: One of `TRAINERS`.
        seed: Of all that is drawn.
        settings: The steps of training; of the language model its updates, as a mapping.
    """
    chosen = importlib.import_module(TRAINERS[trainer])
    began = time.perf_counter()
    if trainer == "language_model":
        result = chosen.run(train, test, seed, chosen.Settings(**settings))
    else:
        result = _run_on_menu(chosen, train, test, seed, settings)
    return {
        "trainer": trainer,
        "seed": seed,
        "seconds": round(time.perf_counter() - began, 1),
        **result,
        "num_train": _num_tasks(train),
        "machine": machine(*chosen.PACKAGES),
    }


def _run_on_menu(chosen: Any, train: Path, test: Path, seed: int, steps: int) -> dict[str, Any]:
    learner = chosen.Learner(train, 1000 * seed)
    played = {"untrained": play(test, learner.choose(is_greedy=False), seed=seed)}
    began = time.perf_counter()
    curve = learner.learn(steps)
    train_s = time.perf_counter() - began
    played["sampled"] = play(test, learner.choose(is_greedy=False), seed=seed)
    greedy = learner.choose(is_greedy=True)
    played["greedy"] = play(test, greedy, seed=seed)
    played["greedy, shuffled menu"] = play(test, greedy, seed=seed, is_shuffled=True)
    learner.close()
    return {
        "steps": steps,
        "train_s": round(train_s, 1),
        "curve": curve,
        "played": {name: list(map(asdict, episodes)) for name, episodes in played.items()},
        "settings": chosen.SETTINGS,
    }


def run_baselines(test: Path) -> dict[str, Any]:
    """Plays the policies that learn nothing."""
    found = {
        name: [asdict(replace(one, patch="")) for one in play(test, choose, seed=0)]
        for name, choose in BASELINES.items()
    }
    return {"trainer": "baselines", "seed": None, "played": found, "machine": machine()}


def run_search(test: Path) -> dict[str, Any]:
    """Plays `template-repair` without a limit of turns."""
    with tempfile.TemporaryDirectory() as folder:
        run = evaluate(Path(folder, "run"), "template-repair", tasks=str(test), concurrency=2)
        searched = evaluation_report(run).episodes
    programs = {task.task_id: task.repo for task in coding_gym.load_tasks(str(test))}
    found = [
        {
            "task_id": one["task_id"],
            "program": programs[one["task_id"]],
            "resolved": bool(one["resolved"]),
            "test_runs": None,
        }
        for one in searched
    ]
    return {
        "trainer": "search",
        "seed": None,
        "played": {"template-repair": found},
        "machine": machine(),
    }


def _num_tasks(tasks: Path) -> dict[str, int]:
    programs = [task.repo for task in coding_gym.load_tasks(str(tasks))]
    return {"tasks": len(programs), "programs": len(set(programs))}


@cache
def commit() -> str:
    """Returns the commit that runs, as it was at the first call; results are no changes."""
    repository = Repo(ROOT)
    changed = repository.git.status("--porcelain", "--", ".", ":!benchmarks/results")
    return repository.head.commit.hexsha[:7] + ("+changes" if changed else "")


def machine(*packages: str) -> dict[str, Any]:
    """Returns what the figures depend on."""
    return {
        "commit": commit(),
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
        for name, episodes in run.get("played", {}).items():
            played.setdefault(f"{trainer} {name}" if name in TRAINED else name, []).extend(episodes)
    outcomes = {name: by_task(episodes) for name, episodes in played.items()}
    rates = {name: rate(found) for name, found in outcomes.items()}
    test = outcomes["random"]
    explored = runs["explored", None]
    print(f"{len(test)} held-out tasks of {len({program for program, _ in test})} programs")
    print(f"bugs of these kinds: {', '.join(KINDS)}")
    for number in (NUM_LISTED, NUM_CANDIDATES):
        most = {
            (one["program"], one["task_id"]): [any(k < number for k in one["resolved"])]
            for one in explored["test"]
        }
        print(f"one of the first {number} candidates resolves: {formatted(rate(most))}")
    for split in SPLITS:
        print(f"{split}: all candidates tried in {explored[f'{split}_s'] / 60:.1f} min")
    head = f"{'resolved, % [95 % interval over programs]':<56}{'above random, points':<24}"
    print(f"\n{head}{'test runs':<12}tasks")
    for name, found in outcomes.items():
        counts = [episode["test_runs"] for episode in played[name]]
        mean = "many" if None in counts else f"{sum(counts) / len(counts):.1f}"
        more = _difference(found, test) if found is not test else ""
        print(f"{name:<32}{formatted(rates[name]):<24}{more:<24}{mean:<12}{len(found)}")
    trained = {key: run for key, run in runs.items() if key[0] in TRAINERS}
    for trainer in dict.fromkeys(trainer for trainer, _ in trained):
        others = ["first entry", "in order", "template-repair", f"{trainer} untrained"]
        others += [f"{trainer} imitated"]
        policies = [f"{trainer} {name}" for name in TRAINED[2:]]
        for policy, name in product(policies, others):
            if {policy, name} <= outcomes.keys():
                more = _difference(outcomes[policy], outcomes[name])
                print(f"{policy} above {name}: {more}")
    for (trainer, seed), run in trained.items():
        greedy = [one["resolved"] for one in run["played"]["greedy"]]
        print(
            f"{trainer}, seed {seed}: greedy {100 * sum(greedy) / len(greedy):.1f} %, "
            f"{run['steps']} {_unit(trainer)} in {run['train_s'] / 60:.1f} min"
        )
    _draw(trained, rates)
    print(f"drawn: {PICTURE.relative_to(ROOT)}")


def _difference(one: Outcomes, other: Outcomes) -> str:
    """The difference on the tasks that both played."""
    both = [task for task in one if task in other]  # in order: the interval draws by it
    text = formatted(difference({t: one[t] for t in both}, {t: other[t] for t in both}))
    return text if len(both) == len(one) == len(other) else f"{text} on {len(both)} tasks"


def _unit(trainer: str) -> str:
    return "updates" if trainer == "language_model" else "steps"


def by_task(episodes: list[Mapping[str, Any]]) -> dict[tuple[str, str], list[bool]]:
    """Returns whether episodes were resolved, by program and task."""
    found: dict[tuple[str, str], list[bool]] = {}
    for episode in episodes:
        place = episode["program"], episode["task_id"]
        found.setdefault(place, []).append(episode["resolved"])
    return found


def formatted(found: tuple[float, float, float]) -> str:
    """Returns a share and its interval in percent."""
    mean, low, high = (100 * value for value in found)
    return f"{mean:.1f} [{low:.1f}, {high:.1f}]"


def _draw(
    trained: Mapping[tuple[str, int], Any], rates: Mapping[str, tuple[float, float, float]]
) -> None:
    pyplot = importlib.import_module("matplotlib.pyplot")
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for (trainer, seed), run in sorted(trained.items()):
        parts = [part for part in run["curve"] if part["episodes"]]
        steps = [part["until"] / parts[-1]["until"] for part in parts]
        shares = [100 * part["resolved"] for part in parts]
        left.plot(steps, shares, marker=".", label=f"{trainer}, seed {seed}")
    left.set(
        xlabel="share of the training", ylabel="resolved, %", title="in training", ylim=(0, None)
    )
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


def run_all(bench: Path, options: argparse.Namespace) -> None:
    """Explores, plays the baselines, and trains; adds each line as it is there."""
    commit()
    train, test = (subset(bench, split, options.each) for split in SPLITS)
    (bench / "resolved.jsonl").unlink(missing_ok=True)
    if options.known and options.known.exists():
        load_results(options.known, commit())
    else:
        num_graded = NUM_LISTED if "language_model" in options.trainers else 0
        _keep(run_exploration(train, test, num_graded))
        _keep(run_baselines(test))
        if options.known:
            save_results(options.known, commit())
    updates = {"imitated": options.imitated, "reinforced": options.reinforced}
    runs = [
        (train, test, trainer, seed, updates if trainer == "language_model" else options.steps)
        for trainer in options.trainers
        for seed in options.seeds
    ]
    in_forks(_trained, runs, options.at_once)
    if options.template_repair:
        _keep(run_search(subset(bench, "test", options.template_repair)))


def in_forks(
    function: Callable[..., object], calls: Iterable[tuple[Any, ...]], at_once: int
) -> None:
    """Calls a function in processes that know what was explored, a few at a time."""
    forks, running, waiting = multiprocessing.get_context("fork"), list[Any](), list(calls)
    while waiting or running:
        while waiting and len(running) < at_once:
            running.append(forks.Process(target=function, args=waiting.pop(0)))
            running[-1].start()
        connection.wait([process.sentinel for process in running])
        for process in [process for process in running if not process.is_alive()]:
            running.remove(process)
            if process.exitcode:
                raise SystemExit("a training failed; see above")


def _trained(train: Path, test: Path, trainer: str, seed: int, settings: Any) -> None:
    result = run_seed(train, test, trainer, seed, settings)
    resolved = [
        {"task_id": episode["task_id"], "patch": episode.pop("patch")}
        for episodes in result["played"].values()
        for episode in episodes
    ]
    lines = [json.dumps(one) + "\n" for one in resolved if one["patch"]]
    # Beside the tasks, as patches quote the programs.
    with (test.parent / "resolved.jsonl").open("a", encoding="utf-8") as file:
        file.write("".join(lines))
    _keep(result)


def _keep(result: Mapping[str, Any]) -> None:
    with RESULTS.open("a", encoding="utf-8") as file:  # one write: seeds run at the same time
        file.write(json.dumps(result) + "\n")


def main() -> None:
    """Runs everything, or prints the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bench", type=Path, nargs="?", help="the folder of programs.py")
    parser.add_argument(
        "--trainers", nargs="*", choices=TRAINERS, default=list(TRAINERS), help="(default all)"
    )
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2], help="(default 0 1 2)")
    parser.add_argument("--steps", type=int, default=20_000, help="on the menu (default 20000)")
    parser.add_argument("--imitated", type=int, default=240, help="updates (default 240)")
    parser.add_argument("--reinforced", type=int, default=20, help="of GRPO (default 20)")
    parser.add_argument("--each", type=int, default=10, help="tasks per program (default 10)")
    parser.add_argument("--at-once", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument(
        "--template-repair", type=int, default=0, metavar="N", help="held-out tasks per program"
    )
    parser.add_argument(
        "--known", type=Path, help="keeps what is explored in this file; delete it after changes"
    )
    parser.add_argument("--report", action="store_true", help="print and draw the results so far")
    options = parser.parse_args()
    if options.bench is not None:
        run_all(options.bench, options)
    elif not options.report:
        parser.error("name the folder of the bench, or --report")
    report()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the networks are too small for more
    main()
