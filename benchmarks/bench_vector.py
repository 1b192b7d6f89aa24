"""Many episodes at once: the native vector env, Gymnasium's ``AsyncVectorEnv``, and one in a loop.

Run it by ``python benchmarks/bench_vector.py``, on a machine that does nothing else. Each is
measured in a process of its own, so that memory is its own too. It prints a table (``--json``: one
JSON line), appends the line to ``.bench/vector.jsonl`` and draws ``vector.png``. The
exit code is 1 where a figure missed its target.

Graded episodes are of nine commands and a submit, every other one repairs its task; they are
played in step, and by ``send`` and ``recv``. ``PYTHONPATH`` picks another checkout of the package,
and ``--backend`` another sandbox.

Memory is the proportional set size (PSS) of the process and all its descendants: zygotes and
sandboxes count, and what processes share counts once.
"""

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
from figures import Figure, parser, progress, report
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
from sandbox_steps import spawned_per_s

from coding_gym import load_tasks
from coding_gym.vector import CodingRepairVectorEnv, make_vec

AnyVectorEnv = VectorEnv[Any, Any, Any]


def shell(command: str) -> str:
    """Returns a call of the tool ``shell``."""
    return json.dumps({"name": "shell", "arguments": {"cmd": command}})


TRUE = shell("true")
CHANGE = shell("echo 'found nothing yet' > notes.txt")  # a changed tree is graded
LOOKS = [shell("ls -R"), shell("git status --short"), shell("grep -rn def . | head -50")]
NUM_COMMANDS = 9
SUBMIT = '{"name": "submit", "arguments": {}}'
ENV: dict[str, Any] = {"max_turns": 100_000}


def single() -> gym.Env[Any, Any]:
    """Returns one env."""
    return gym.make("coding_gym:CodingRepair-v0", disable_env_checker=True, **ENV)


def native(num_envs: int, *, prefetch: bool = False) -> CodingRepairVectorEnv:
    """Returns the vector env of this package."""
    return make_vec(num_envs, prefetch=prefetch, **ENV)


MAKERS: dict[str, Callable[[int], AnyVectorEnv]] = {
    "one in a loop": lambda _: SyncVectorEnv([single]),
    "AsyncVectorEnv": lambda num: AsyncVectorEnv([single] * num),
    "native": native,
    "native, prefetch": partial(native, prefetch=True),
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


def of_spawners(env: AnyVectorEnv) -> dict[str, float]:
    """Returns steps per second as shares of what two processes spawn that only spawn."""
    shares: dict[str, list[float]] = {"right_after_reset": [], "later": []}
    for _ in range(5):
        env.reset()
        soon, later, bare = steps_per_s(env, 3), steps_per_s(env, 10), spawned_per_s(1.0)
        shares["right_after_reset"].append(soon / bare)
        shares["later"].append(later / bare)
    return {f"of_spawners_{name}": round(statistics.median(s), 2) for name, s in shares.items()}


class Policy:
    """Nine commands and a submit; in every other episode the first of them repairs the task."""

    def __init__(self, num_envs: int) -> None:
        self._golds = {task.task_id: task.gold_patch for task in load_tasks()}
        self._num_episodes = list(range(num_envs))

    def act(self, index: int, turn: int, task_id: str) -> str:
        """Returns the next action of one env."""
        if turn > 0:
            return SUBMIT if turn >= NUM_COMMANDS else LOOKS[turn % len(LOOKS)]
        self._num_episodes[index] += 1
        if self._num_episodes[index] % 2:
            return CHANGE
        return shell(f"git apply - <<'END'\n{self._golds[task_id]}END")

    def act_all(self, infos: dict[str, Any]) -> list[str]:
        """Returns the next actions of the envs that ``infos`` speaks of."""
        ids = infos.get("env_id", range(len(infos["turn"])))
        known = zip(ids, infos["turn"], infos["task_id"], strict=True)
        return [self.act(int(index), int(turn), task_id) for index, turn, task_id in known]


def mixture(env: AnyVectorEnv, num_ends: int) -> dict[str, float]:
    """Returns steps and graded episodes per second of that policy, and the share of repairs."""
    policy, num_steps, ends, repairs = Policy(env.num_envs), 0, 0, 0
    _, infos = env.reset(seed=0)
    began = time.perf_counter()
    while ends < num_ends:
        _, rewards, terminated, truncated, infos = env.step(policy.act_all(infos))
        num_steps += int(np.sum(infos["turn"] > 0))
        ends += int(np.sum(terminated | truncated))
        repairs += int(np.sum(rewards > 0))
    return _rates(num_steps, ends, repairs, time.perf_counter() - began)


def mixture_at_own_pace(env: CodingRepairVectorEnv, num_ends: int) -> dict[str, float]:
    """The same by ``send`` and ``recv``, which do not wait for envs that are being graded."""
    policy, num_steps, ends, repairs = Policy(env.num_envs), 0, 0, 0
    _, infos = env.reset(seed=0)
    began = time.perf_counter()
    env.send(policy.act_all(infos))
    while ends < num_ends:
        _, rewards, terminated, truncated, infos = env.recv()
        num_steps += int(np.sum(infos["turn"] > 0))
        ends += int(np.sum(terminated | truncated))
        repairs += int(np.sum(rewards > 0))
        env.send(policy.act_all(infos), infos["env_id"])
    return _rates(num_steps, ends, repairs, time.perf_counter() - began)


def _rates(num_steps: int, ends: int, repairs: int, took_s: float) -> dict[str, float]:
    return {
        "steps_per_s": round(num_steps / took_s, 1),
        "episodes_per_s": round(ends / took_s, 2),
        "repaired": round(repairs / ends, 2),
    }


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
    figures |= of_spawners(env) | memory(os.getpid())
    num_ends = max(3 * num, 12)  # many, so that those under way at the end hardly count
    mixtures = {"mixture": mixture(env, num_ends)}
    if isinstance(env, CodingRepairVectorEnv):
        mixtures["mixture_send_recv"] = mixture_at_own_pace(env, num_ends)
    for title, rates in mixtures.items():
        figures |= {f"{title}_{name}": rate for name, rate in rates.items()}
    return figures | {"close_s": round(timed_s(env.close), 3)}


def figures_of(rows: dict[str, dict[str, Any]]) -> list[Figure]:
    """Returns what the kinds of vector env are compared by."""
    ours, theirs, one = rows["native"], rows["AsyncVectorEnv"], rows["one in a loop"]

    def compared(name: str, above: float, below: float, **target: Any) -> Figure:
        return Figure(name=name, value=round(above / below, 3), **target)

    def rate(row: dict[str, Any]) -> float:
        return float(row["steps_per_s"]["median"])

    graded, own_pace = "mixture_episodes_per_s", "mixture_send_recv_episodes_per_s"
    more = {"target": 1.0, "is_floor": True}
    return [
        compared("steps/s, ours / AsyncVectorEnv", rate(ours), rate(theirs), **more),
        compared("steps/s, ours / one env in a loop", rate(ours), rate(one)),
        Figure(name="steps/s, ours", value=rate(ours)),
        Figure(
            name="steps/s, ours / two processes that only spawn",
            value=ours["of_spawners_later"],
            details={"right_after_reset": ours["of_spawners_right_after_reset"]},
        ),
        compared("graded episodes/s, ours / AsyncVectorEnv", ours[graded], theirs[graded], **more),
        compared("graded episodes/s, send and recv / in step", ours[own_pace], ours[graded]),
        Figure(name="graded episodes/s, send and recv", value=ours[own_pace]),
        compared("memory, ours / AsyncVectorEnv", ours["pss_mib"], theirs["pss_mib"], target=0.5),
        Figure(name="memory, ours", value=ours["pss_mib"], unit="MiB"),
    ]


def main() -> None:
    """Measures each kind in a process of its own."""
    made = parser(__doc__, rounds=None)
    made.add_argument("--num-envs", type=int, default=64, help="episodes at once (default 64)")
    made.add_argument("--backend", default="auto", help="of the sandboxes (default auto)")
    made.add_argument("--kind", choices=MAKERS, help="measure one kind, and print its JSON")
    options = made.parse_args()
    ENV["sandbox"] = options.backend
    if options.kind:
        logging.getLogger("coding_gym").setLevel(logging.ERROR)  # it drops episodes on purpose
        print(json.dumps(measure(options.kind, options.num_envs)))
        return
    rows: dict[str, dict[str, Any]] = {}
    for name in MAKERS:
        progress(name)
        argv = [sys.executable, __file__, "--kind", name, "--num-envs", str(options.num_envs)]
        argv += ["--backend", options.backend]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
        rows[name] = json.loads(done.stdout)
    report("vector", figures_of(rows), options, num_envs=options.num_envs, kinds=rows)


if __name__ == "__main__":
    main()
