"""Many episodes at once: the native vector env, Gymnasium's ``AsyncVectorEnv``, and one in a loop.

Run it by ``python benchmarks/bench_vector.py``. Each is measured in a process of its own, so that
memory is its own too. It prints a table, and one JSON line with everything when ``--json`` is
given. Machines are noisy: compare ratios, not milliseconds.

"graded/s" are episodes of about six turns that end with a changed tree and so with hidden tests,
played in step, and by ``send`` and ``recv``.

Memory is the proportional set size (PSS) of the process and all its descendants: zygotes and
sandboxes count, and what processes share counts once.
"""

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from bench_core import machine
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

from coding_gym.vector import CodingRepairVectorEnv, make_vec

AnyVectorEnv = VectorEnv[Any, Any, Any]


def shell(command: str) -> str:
    """Returns a call of the tool ``shell``."""
    return json.dumps({"name": "shell", "arguments": {"cmd": command}})


TRUE = shell("true")
CHANGE = shell("echo 'found nothing yet' > notes.txt")  # a changed tree is graded
LOOKS = [shell("ls -R"), shell("git status --short"), shell("grep -rn def . | head -50")]
SUBMIT = '{"name": "submit", "arguments": {}}'
ENV: dict[str, Any] = {"max_turns": 100_000, "disable_env_checker": True}


def single() -> gym.Env[Any, Any]:
    """Returns one env."""
    return gym.make("coding_gym:CodingRepair-v0", **ENV)


MAKERS: dict[str, Callable[[int], AnyVectorEnv]] = {
    "one in a loop": lambda _: SyncVectorEnv([single]),
    "AsyncVectorEnv": lambda num: AsyncVectorEnv([single] * num),
    "native": partial(make_vec, max_turns=ENV["max_turns"]),
    "native, prefetch": partial(make_vec, max_turns=ENV["max_turns"], prefetch=True),
}


def descendants(pid: int) -> Iterator[int]:
    """Yields a process and all below it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*"):
        for child in (task / "children").read_text().split():
            yield from descendants(int(child))


def memory(pid: int) -> dict[str, Any]:
    """Returns the PSS of a process and all below it, in MiB, and how many they are."""
    total_kib, processes, unreadable = 0, 0, 0
    for process in descendants(pid):
        processes += 1
        try:
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
            total_kib += next(int(x.split()[1]) for x in rollup.splitlines() if x[:4] == "Pss:")
        except (PermissionError, StopIteration):  # sandboxes can be read by root only
            unreadable += 1
    figures = {"pss_mib": round(total_kib / 1024, 1), "processes": processes}
    return figures | ({"unreadable_processes": unreadable} if unreadable else {})


def spread(samples: list[float], digits: int) -> dict[str, float]:
    """Returns the median, the least and the most."""
    values = {"median": statistics.median(samples), "min": min(samples), "max": max(samples)}
    return {name: round(value, digits) for name, value in values.items()}


def timed_s(work: Callable[[], object]) -> float:
    """Returns how long one call took, in seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def steps_per_s(env: AnyVectorEnv, rounds: int) -> float:
    """Returns how many commands that do nothing are played per second."""
    actions = [TRUE] * env.num_envs
    return rounds * env.num_envs / timed_s(lambda: [env.step(actions) for _ in range(rounds)])


class Policy:
    """Changes the tree, looks around for a few turns, and submits; the same for the same seed."""

    def __init__(self, num_envs: int) -> None:
        self._rngs = [np.random.default_rng(index) for index in range(num_envs)]

    def act(self, index: int, turn: int) -> str:
        """Returns the next action of one env."""
        if turn == 0:
            return CHANGE
        rng = self._rngs[index]
        return SUBMIT if rng.random() < 0.2 else LOOKS[int(rng.integers(len(LOOKS)))]


def mixture(env: AnyVectorEnv, num_ends: int) -> tuple[float, float]:
    """Returns steps per second, and graded episodes per second, of that policy."""
    policy, num_steps, ends = Policy(env.num_envs), 0, 0
    _, infos = env.reset(seed=0)
    began = time.perf_counter()
    while ends < num_ends:
        turns = infos["turn"]
        actions = [policy.act(index, int(turn)) for index, turn in enumerate(turns)]
        _, _, terminated, truncated, infos = env.step(actions)
        num_steps += int(np.sum(infos["turn"] > 0))
        ends += int(np.sum(terminated | truncated))
    took_s = time.perf_counter() - began
    return num_steps / took_s, ends / took_s


def mixture_at_own_pace(env: CodingRepairVectorEnv, num_ends: int) -> tuple[float, float]:
    """The same by ``send`` and ``recv``, where nobody waits for an env that is being graded."""
    policy, num_steps, ends = Policy(env.num_envs), 0, 0
    env.reset(seed=0)
    began = time.perf_counter()
    env.send([CHANGE] * env.num_envs)
    while ends < num_ends:
        _, _, terminated, truncated, infos = env.recv()
        ids, turns = infos["env_id"], infos["turn"]
        num_steps += int(np.sum(turns > 0))
        ends += int(np.sum(terminated | truncated))
        env.send([policy.act(int(i), int(t)) for i, t in zip(ids, turns, strict=True)], ids)
    took_s = time.perf_counter() - began
    return num_steps / took_s, ends / took_s


def measure(name: str, num_envs: int) -> dict[str, Any]:
    """Returns all figures of one kind of vector env."""
    began = time.perf_counter()
    env = MAKERS[name](num_envs)
    start_s = time.perf_counter() - began
    first_reset_s = timed_s(lambda: env.reset(seed=0))
    num, is_single = env.num_envs, env.num_envs == 1
    steps_per_s(env, 50 if is_single else 3)  # warm-up
    resets = [timed_s(env.reset) * 1e3 / num for _ in range(20 if is_single else 5)]
    env.reset(seed=0)
    steps = [steps_per_s(env, 100 if is_single else 10) for _ in range(7)]
    figures: dict[str, Any] = {
        "num_envs": num,
        "start_s": round(start_s, 3),
        "first_reset_s": round(first_reset_s, 3),
        "reset_ms_per_env": spread(resets, 2),
        "steps_per_s": spread(steps, 1),
    }
    figures |= memory(os.getpid())
    mixtures = {"mixture": mixture(env, max(num, 12))}
    if isinstance(env, CodingRepairVectorEnv):
        mixtures["mixture_send_recv"] = mixture_at_own_pace(env, num)
    for title, (steps_s, episodes_s) in mixtures.items():
        figures[f"{title}_steps_per_s"] = round(steps_s, 1)
        figures[f"{title}_episodes_per_s"] = round(episodes_s, 2)
    return figures | {"close_s": round(timed_s(env.close), 3)}


def show(rows: dict[str, dict[str, Any]]) -> None:
    """Prints the table."""
    titles = ("envs", "start s", "reset ms/env", "steps/s", "graded/s", "send/recv", "MiB", "procs")
    print(f"{'':<18}" + "".join(f"{title:>14}" for title in titles))
    for name, row in rows.items():
        cells = (
            row["num_envs"],
            row["start_s"] + row["first_reset_s"],
            row["reset_ms_per_env"]["median"],
            row["steps_per_s"]["median"],
            row["mixture_episodes_per_s"],
            row.get("mixture_send_recv_episodes_per_s", "-"),
            row["pss_mib"],
            row["processes"],
        )
        texts = (f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in cells)
        print(f"{name:<18}" + "".join(f"{text:>14}" for text in texts))


def main() -> None:
    """Measures each kind in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=64, help="episodes at once (default 64)")
    parser.add_argument("--json", action="store_true", help="print one JSON line at the end")
    parser.add_argument("--only", choices=MAKERS, help="measure one kind, and print its JSON")
    options = parser.parse_args()
    if options.only:
        logging.getLogger("coding_gym").setLevel(logging.ERROR)  # it drops episodes on purpose
        print(json.dumps(measure(options.only, options.num_envs)))
        return
    rows: dict[str, dict[str, Any]] = {}
    for name in MAKERS:
        argv = [sys.executable, __file__, "--only", name, "--num-envs", str(options.num_envs)]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
        rows[name] = json.loads(done.stdout)
    show(rows)
    ours, theirs, one = rows["native"], rows["AsyncVectorEnv"], rows["one in a loop"]
    ratios = {
        "steps/s, native / AsyncVectorEnv": ours["steps_per_s"]["median"]
        / theirs["steps_per_s"]["median"],
        "steps/s, native / one in a loop": ours["steps_per_s"]["median"]
        / one["steps_per_s"]["median"],
        "graded episodes/s, native / AsyncVectorEnv": ours["mixture_episodes_per_s"]
        / theirs["mixture_episodes_per_s"],
        "graded episodes/s, send and recv / AsyncVectorEnv": ours[
            "mixture_send_recv_episodes_per_s"
        ]
        / theirs["mixture_episodes_per_s"],
        "memory, native / AsyncVectorEnv": ours["pss_mib"] / theirs["pss_mib"],
    }
    print()
    for title, value in ratios.items():
        print(f"{title}: {value:.2f}")
    if options.json:
        rounded = {title: round(value, 3) for title, value in ratios.items()}
        print(json.dumps({"machine": machine(), "ratios": rounded, "kinds": rows}))


if __name__ == "__main__":
    main()
