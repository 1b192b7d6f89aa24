"""Environment steps per second of `MenuActions`, with a policy that draws among what makes sense.

    python benchmarks/learning/menu_steps.py                        # this checkout
    python benchmarks/learning/menu_steps.py --checkout ../before   # by turns with another one

A run plays on eight slots for a while. At first programs are located and candidates tried, and
later most results are known; so each run has a figure for its first third and one for its last.
"""

import argparse
import inspect
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
TASK_IDS = (
    *("cronwise-autumn-night", "cronwise-working-days", "inkwell-flat-listings"),
    *("ledgerline-month-overlap", "ledgerline-two-currency-wallet"),
    *("millrace-second-run", "slate-guest-book"),
)
_SUBMIT = 3
_GRADING_TIMEOUT_S = 5.0


def measure(tasks: str, seconds: float, num_envs: int, seed: int) -> dict[str, Any]:
    """Returns steps per second in the first and the last third of one run."""
    from coding_gym import load_tasks
    from coding_gym.envs import CodingRepairEnv
    from coding_gym.vector import make_vec

    found = load_tasks(task_ids=TASK_IDS) if tasks == "bundled" else load_tasks(tasks)
    # Less time for candidates that never end.
    rows = [task.to_row() | {"grading_timeout_s": _GRADING_TIMEOUT_S} for task in found]
    choice: dict[str, Any] = {"tasks": rows}
    if "cached" in (inspect.getdoc(CodingRepairEnv) or ""):  # older checkouts have no such grading
        choice["grading"] = "cached"
    menu = {"name": "MenuActions", "kwargs": {"num_candidates": 48}}
    env = make_vec(num_envs, wrappers=[menu], max_turns=24, max_obs_tokens=64, **choice)
    rng = np.random.default_rng(seed)

    def drawn(masks: Any) -> list[int]:
        weights = masks.astype(float)
        weights[:, _SUBMIT] *= 0.1  # or most episodes would end before anything is tried
        weights /= weights.sum(axis=1, keepdims=True)
        return [int(rng.choice(len(row), p=row)) for row in weights]

    observations, _ = env.reset(seed=seed)
    env.send(drawn(observations["action_mask"]))
    marks = [(time.perf_counter(), 0)]
    while marks[-1][0] - marks[0][0] < seconds:
        observations, *_, infos = env.recv(min_envs=1)
        env.send(drawn(observations["action_mask"]), infos["env_id"])
        marks.append((time.perf_counter(), marks[-1][1] + len(infos["env_id"])))
    env.close()
    return {
        "first": _rate(marks, 0, 1 / 3),
        "last": _rate(marks, 2 / 3, 1),
        "steps": marks[-1][1],
    }


def _rate(marks: list[tuple[float, int]], start: float, end: float) -> float:
    """Steps per second between two shares of a run's time."""
    first, last = marks[0][0], marks[-1][0]
    inside = [m for m in marks if start <= (m[0] - first) / (last - first) <= end]
    return round((inside[-1][1] - inside[0][1]) / max(1e-9, inside[-1][0] - inside[0][0]), 1)


def main() -> None:
    """Runs once, or by turns in several checkouts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", default="bundled", help="a file of tasks (default: bundled)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of one run (default 60)")
    parser.add_argument("--envs", type=int, default=8, help="slots (default 8)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each checkout (default 1)")
    parser.add_argument("--checkout", type=Path, help="another checkout, by turns with this one")
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)  # of one run, in a process
    options = parser.parse_args()
    if options.seed is not None:
        print(json.dumps(measure(options.tasks, options.seconds, options.envs, options.seed)))
        return
    command = [sys.executable, __file__, "--tasks", options.tasks]
    command += ["--seconds", str(options.seconds), "--envs", str(options.envs)]
    for number in range(options.rounds):
        for place in filter(None, (options.checkout, ROOT)):
            env = os.environ | {"PYTHONPATH": str(place.resolve())}
            ended = subprocess.run(
                [*command, "--seed", str(number)],
                env=env,
                capture_output=True,
                text=True,
                check=True,
            )
            print(f"{place}: {ended.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
