"""What MaskablePPO learns on the bundled train programs in 20,000 steps of real repair.

    python benchmarks/learning/maskable_ppo.py --seed 0    # trains and appends one JSON line
    python benchmarks/learning/maskable_ppo.py --report    # prints the table of all lines

Seeds are independent, so they may run at the same time (``OMP_NUM_THREADS=1`` each). The reward
is the environment's own: 1 for a patch that passes the hidden tests, else 0, no shaping. Three
policies play every train task equally often: one that draws uniformly among the actions that make
sense ("random"), the trained one drawing from its distribution ("sampled"), and the trained one
taking its likeliest action ("greedy"). The environment is deterministic, so once per task is
enough for the last.
"""

import argparse
import json
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from git import Repo
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from coding_gym import load_tasks
from coding_gym.adapters.sb3 import CodingRepairVecEnv, make_vec_env
from coding_gym.adapters.sb3_policy import MenuPolicy

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "learning.jsonl"
ENV = {"num_candidates": 48, "max_turns": 24, "grading_timeout_s": 5.0, "max_obs_tokens": 64}
GRADING = "cached"  # each patch once in a process
PPO = {
    "learning_rate": 2e-3,
    "n_steps": 64,
    "batch_size": 256,
    "n_epochs": 10,
    "gamma": 0.97,
    "ent_coef": 0.02,
    "target_kl": 0.03,
}
NUM_ENVS = 8
# All train tasks of the time when the figures that are kept were taken, at the commit that each
# line names. There are more by now, and some of these programs have grown.
TASKS = (
    *("cronwise-autumn-night", "cronwise-working-days", "inkwell-flat-listings"),
    *("ledgerline-month-overlap", "ledgerline-two-currency-wallet"),
    *("millrace-second-run", "slate-guest-book"),
)
NUM_SLICES = 10  # of the learning curve
Z = 1.959964  # of a 95 % interval

Predict = Callable[[dict[str, Any], Any], Any]


def make_env(seed: int, sampler: str, num_envs: int) -> CodingRepairVecEnv:
    """Returns the vec env of the train tasks, with less time to grade candidates that hang."""
    tasks = load_tasks(task_ids=TASKS)
    rows = [task.to_row() | {"grading_timeout_s": ENV["grading_timeout_s"]} for task in tasks]
    return make_vec_env(
        num_envs,
        wrappers=[{"name": "MenuActions", "kwargs": {"num_candidates": ENV["num_candidates"]}}],
        seed=seed,
        tasks=rows,
        sampler=sampler,
        max_turns=ENV["max_turns"],
        max_obs_tokens=ENV["max_obs_tokens"],
        grading=GRADING,
    )


class Curve(BaseCallback):
    """Notes of every training episode when it ended, its task, and whether it was resolved."""

    def __init__(self) -> None:
        super().__init__()
        self.episodes: list[tuple[int, str, bool]] = []

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "resolved" in info:
                self.episodes.append((self.num_timesteps, info["task_id"], info["resolved"]))
        return True

    def _on_rollout_end(self) -> None:
        recent = [resolved for *_, resolved in self.episodes[-200:]]
        rate = sum(recent) / max(1, len(recent))
        print(f"{self.num_timesteps} steps, {rate:.1%} of the last {len(recent)}", file=sys.stderr)

    def slices(self, steps: int) -> list[dict[str, float]]:
        """Returns the resolved rate of the episodes that ended in each slice of training."""
        found = []
        for number in range(NUM_SLICES):
            low, high = (round(steps * (number + k) / NUM_SLICES) for k in (0, 1))
            ended = [resolved for at, _, resolved in self.episodes if low < at <= high]
            rate = sum(ended) / max(1, len(ended))
            found.append({"until": high, "episodes": len(ended), "resolved": round(rate, 4)})
        return found


def play(env: CodingRepairVecEnv, choose: Predict, num_each: int) -> dict[str, list[bool]]:
    """Returns what became of the first episodes of each slot, by task.

    Args:
        env: Whose slots go through all tasks in turn.
        choose: Gives actions for observations and masks.
        num_each: Episodes of every slot that count.
    """
    outcomes: dict[str, list[bool]] = {}
    counts = [0] * env.num_envs
    observations = env.reset()
    while min(counts) < num_each:
        masks = np.stack(env.env_method("action_masks"))
        observations, _, dones, infos = env.step(choose(observations, masks))
        for index in np.flatnonzero(dones):
            if counts[index] < num_each:
                info = infos[index]
                outcomes.setdefault(info["task_id"], []).append(info["resolved"])
            counts[index] += 1
    return outcomes


def evaluate(seed: int, choose: Predict, rounds: int, num_envs: int) -> dict[str, list[int]]:
    """Returns how many episodes of each task were resolved, and of how many."""
    env = make_env(seed, "sequential", num_envs)
    outcomes = play(env, choose, rounds * len(load_tasks(task_ids=TASKS)))
    env.close()
    return {task: [sum(ended), len(ended)] for task, ended in sorted(outcomes.items())}


def run_seed(seed: int, steps: int, rounds: int) -> dict[str, Any]:
    """Trains on one seed and returns everything that is reported of it."""
    torch.set_num_threads(1)
    generator = np.random.default_rng(seed)

    def draw(_observations: dict[str, Any], masks: Any) -> Any:
        return np.array([generator.choice(np.flatnonzero(mask)) for mask in masks])

    random = evaluate(seed, draw, 3 * rounds, NUM_ENVS)
    env = make_env(1000 * seed, "shuffled", NUM_ENVS)
    model = MaskablePPO(MenuPolicy, env, seed=1000 * seed, device="cpu", **PPO)
    curve, began = Curve(), time.perf_counter()
    model.learn(steps, callback=curve)
    train_s = time.perf_counter() - began
    env.close()

    def sample(observations: dict[str, Any], masks: Any) -> Any:
        return model.predict(observations, action_masks=masks)[0]

    def best(observations: dict[str, Any], masks: Any) -> Any:
        return model.predict(observations, action_masks=masks, deterministic=True)[0]

    return {
        "seed": seed,
        "steps": model.num_timesteps,
        "train_s": round(train_s, 1),
        "steps_per_s": round(model.num_timesteps / train_s, 2),
        "curve": curve.slices(model.num_timesteps),
        "random": random,
        "sampled": evaluate(seed, sample, rounds, NUM_ENVS),
        "greedy": evaluate(seed, best, 1, 1),
        "env": {**ENV, "num_envs": NUM_ENVS},
        "ppo": PPO,
        "machine": machine(),
    }


def machine() -> dict[str, Any]:
    """Returns what the figures depend on."""
    repository = Repo(ROOT)
    changed = "+changes" if repository.is_dirty(untracked_files=True) else ""
    names = ("gymnasium", "numpy", "sb3-contrib", "stable-baselines3", "torch")
    return {
        "commit": repository.head.commit.hexsha[:7] + changed,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
    }


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Returns the 95 % score interval of a rate (Wilson, JASA 22, 1927)."""
    rate, spread = successes / trials, Z * Z / trials
    middle = (rate + spread / 2) / (1 + spread)
    half = Z * math.sqrt((rate * (1 - rate) + spread / 4) / trials) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def shown(counts: Iterable[Sequence[int]]) -> str:
    """Returns a rate with its interval, in percent."""
    pairs = list(counts)
    successes, trials = (sum(pair[k] for pair in pairs) for k in (0, 1))
    low, high = wilson(successes, trials)
    rate = f"{100 * successes / trials:5.1f} [{100 * low:4.1f}, {100 * high:4.1f}]"
    return f"{rate} ({successes}/{trials})"


def report() -> None:
    """Prints the newest line of each seed, then all of them by task."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    runs = sorted({run["seed"]: run for run in map(json.loads, lines)}.values(), key=_seed)
    kinds = ("random", "sampled", "greedy")
    print("resolved on the train tasks, % [Wilson 95 % interval of the episodes] (episodes)\n")
    print(f"{'':<32}" + "".join(f"{kind:<30}" for kind in kinds))
    for run in runs:
        row = (shown(run[kind].values()) for kind in kinds)
        print(f"{'seed ' + str(run['seed']):<32}" + "".join(f"{text:<30}" for text in row))
    for task in sorted(runs[0]["random"]):
        row = (shown(run[kind][task] for run in runs) for kind in kinds)
        print(f"{task:<32}" + "".join(f"{text:<30}" for text in row))
    row = (shown(counts for run in runs for counts in run[kind].values()) for kind in kinds)
    print(f"{'all':<32}" + "".join(f"{text:<30}" for text in row))
    print("\nresolved in training, %, by tenth of the steps")
    for run in runs:
        rates = "".join(f"{100 * part['resolved']:6.1f}" for part in run["curve"])
        print(f"seed {run['seed']}: {rates}   {run['steps_per_s']} steps/s")
    first, last = (statistics.mean(run["curve"][k]["resolved"] for run in runs) for k in (0, -1))
    print(f"mean of the seeds: from {100 * first:.1f} in the first tenth to {100 * last:.1f}")


def _seed(run: dict[str, Any]) -> int:
    return int(run["seed"])


def main() -> None:
    """Runs one seed, or prints the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--seed", type=int, help="train on this seed and append the result")
    what.add_argument("--report", action="store_true", help="print the results so far")
    parser.add_argument("--steps", type=int, default=20_000, help="default 20000")
    parser.add_argument(
        "--rounds", type=int, default=1, help=f"times {NUM_ENVS} episodes per task (default 1)"
    )
    options = parser.parse_args()
    if options.report:
        report()
        return
    result = run_seed(options.seed, options.steps, options.rounds)
    line = json.dumps(result) + "\n"
    with RESULTS.open("a", encoding="utf-8") as file:  # one write: seeds run at the same time
        file.write(line)
    print(line, end="")


if __name__ == "__main__":
    main()
