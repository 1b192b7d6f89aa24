"""Records scripted episodes, so that two commits of this package can be compared byte for byte.

    python scripts/record_episodes.py --out old.jsonl
    python scripts/record_episodes.py --out new.jsonl --tasks 2 --toolsets nano,bash
    python scripts/record_episodes.py --compare old.jsonl new.jsonl --permitted permitted.toml

A recording has four parts: every bundled task with every toolset (`tasks`), traces of vector envs
with wrappers (`vector`), snapshots and forks in mid-episode (`forks`), and the batch that TRL's
trainer makes of a scripted model (`trl`, where TRL is installed). It holds what a policy or a
trainer sees: texts, messages, hashes of observations, rewards, flags, infos and trajectories.
Durations are left out. Only public names are used, so that the script runs on both commits; the
package is the one that Python finds: `PYTHONPATH=/path/to/checkout`. Recordings of different parts
are joined by `cat`.

`--compare` prints each kind of difference once and exits with 1 if one is not permitted.
"""

import argparse
import hashlib
import json
import multiprocessing
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import fields, is_dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from compare_recordings import compare, read_permitted
from scripted_policy import TOOLSETS, Gold, edit, script, shell, submit, vector_action, written

Entry = tuple[str, Any]
Job = Callable[[], list[Entry]]

PARTS = ("tasks", "vector", "forks", "trl")
DURATIONS = {"duration_s"}
RAW = "raw"  # what a sandbox gave, with the times that test runners print
ENV_ID = "coding_gym:CodingRepair-v0"
BUDGETS: list[dict[str, Any]] = [
    {"name": "TokenBudget", "kwargs": {"max_tokens": 9000}},
    {"name": "ToolCallBudget", "kwargs": {"max_tool_calls": 8}},
    {"name": "PatchSimilarityReward", "kwargs": {"weight": 0.2}},
    {"name": "TestPassReward", "kwargs": {"weight": 0.2}},
]
ENDS: list[dict[str, Any]] = [
    {"name": "FormatErrorLimit", "kwargs": {"max_errors": 4}},
    {"name": "CollapseDetector"},
    {"name": "TranscriptObservation"},
]


# ---------------------------------------------------------------- what is written


def plain(value: Any) -> Any:
    """Returns a value as JSON has it, without durations."""
    if hasattr(value, "to_json"):
        value = value.to_json()
        value = json.loads(value) if isinstance(value, str) else value
    elif is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): _scrubbed(k, v) for k, v in value.items() if k not in DURATIONS}
    if isinstance(value, np.ndarray):
        return {"dtype": str(value.dtype), "values": plain(value.tolist())}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)


def _scrubbed(name: Any, value: Any) -> Any:
    if name == RAW and isinstance(value, str):
        return re.sub(r"\bin \d+\.\d+s", "in 0.00s", value)
    return plain(value)


def digest(array: Any) -> str:
    """Returns a hash of an array with its type and shape."""
    array = np.ascontiguousarray(array)
    head = f"{array.dtype}{array.shape}".encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()[:16]


def observed(observation: Any) -> dict[str, Any]:
    """Returns hashes of an observation, and how many tokens it has."""
    if not isinstance(observation, Mapping):
        return {"observation": plain(observation)}
    hashes = {name: digest(array) for name, array in observation.items()}
    return hashes | {"num_ids": int(np.sum(observation["attention_mask"]))}


def played(env: Any, actions: Sequence[str]) -> list[Any]:
    """Plays actions until the episode ends, and returns what came of each."""
    steps = []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        flags = {"reward": reward, "terminated": terminated, "truncated": truncated}
        steps.append({"action": action, **observed(observation), **flags, "info": info})
        if terminated or truncated:
            break
    return plain(steps)  # type: ignore[no-any-return]


def begun(started: tuple[Any, dict[str, Any]]) -> Any:
    """Returns what `reset` or `restore` gave."""
    return plain({**observed(started[0]), "info": started[1]})


def outcome(env: Any) -> Any:
    """Returns what an episode leaves: its trajectory, with patch and grade."""
    return plain(env.unwrapped.episode.trajectory())


# ---------------------------------------------------------------- the four parts


def bundled() -> list[Any]:
    """Returns the bundled tasks."""
    from coding_gym import load_tasks

    return list(load_tasks("bundled"))


def record_task(number: int, toolsets: Sequence[str]) -> list[Entry]:
    """Plays one task with some toolsets."""
    import gymnasium as gym

    task, entries = bundled()[number], []
    for toolset in toolsets:
        settings: dict[str, Any] = {"max_obs_tokens": 512 if number % 3 == 0 else 4096}
        if number % 8 == 3:
            settings["sandbox"] = {"shell": "persistent"}
        with gym.make(ENV_ID, task_ids=[task.task_id], toolset=toolset, **settings) as env:
            reset = begun(env.reset(seed=number))
            steps = played(env, script(toolset, Gold.of(task), number))
            value = {"reset": reset, "steps": steps, "trajectory": outcome(env)}
        entries.append((f"tasks/{toolset}/{task.task_id}", value))
    return entries


def split(infos: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Returns one env's info out of the infos of a vector env."""
    info = {}
    for name, value in infos.items():
        if not name.startswith("_") and infos[f"_{name}"][index]:
            info[name] = split(value, index) if isinstance(value, dict) else value[index]
    return info


def rows(observation: Mapping[str, Any], infos: Mapping[str, Any], *flags: Any) -> Any:
    """Returns what each env of a vector env gave."""
    num_envs = len(observation["input_ids"])
    return plain(
        [
            {
                **observed({name: array[index] for name, array in observation.items()}),
                "flags": [array[index] for array in flags],
                "info": split(infos, index),
            }
            for index in range(num_envs)
        ]
    )


def record_vector(name: str, toolset: str, num_steps: int = 30) -> list[Entry]:
    """Plays four envs at once, which begin new episodes by themselves."""
    import gymnasium as gym

    from coding_gym.vector import CodingRepairVectorEnv

    if name == "budgets":
        env: Any = gym.make_vec(
            ENV_ID,
            num_envs=4,
            vectorization_mode="vector_entry_point",
            env_wrappers=BUDGETS,
            toolset=toolset,
            sampler="shuffled",
        )
    else:
        env = CodingRepairVectorEnv(
            4, wrappers=ENDS, group_size=2, prefetch=True, toolset=toolset, tool_format="hermes"
        )
    golds = {task.task_id: Gold.of(task) for task in bundled()}
    entries: list[Entry] = []
    try:
        observation, infos = env.reset(seed=11)
        entries.append((f"vector/{name}/reset", rows(observation, infos)))
        turns, ended = [0] * 4, np.zeros(4, bool)
        for step in range(num_steps):
            ids = infos["task_id"]
            actions = [
                vector_action(toolset, golds[ids[index]], index, turns[index]) for index in range(4)
            ]
            turns = [0 if ended[index] else turns[index] + 1 for index in range(4)]
            observation, rewards, terminated, truncated, infos = env.step(actions)
            value = rows(observation, infos, rewards, terminated, truncated)
            entries.append((f"vector/{name}/{step}", value))
            ended = terminated | truncated
    finally:
        env.close()
    return entries


def record_fork(number: int, toolset: str) -> list[Entry]:
    """Plays three continuations of one snapshot, in the same env and in forked ones."""
    import gymnasium as gym

    import coding_gym
    from coding_gym.wrappers import TestPassReward, TokenBudget, ToolCallBudget

    task = bundled()[number]
    gold = Gold.of(task)
    actions = script(toolset, gold, 0)[:-2]
    plain_end = [written(shell(toolset, "git status --short"), 0), written(submit(toolset), 1)]
    repair = [written(edit(toolset, *hunk), 1) for hunk in reversed(gold.hunks)]
    value: dict[str, Any] = {}
    made = gym.make(ENV_ID, task_ids=[task.task_id], toolset=toolset)
    env: Any = TestPassReward(ToolCallBudget(TokenBudget(made, 30_000), 40), weight=0.2)
    with env:
        value["reset"] = begun(env.reset(seed=number))
        value["steps"] = played(env, actions[:9])
        taken = coding_gym.snapshot(env)
        with coding_gym.fork(env) as forked:
            steps = played(forked, [*repair, *plain_end])
            value["forked"] = {"steps": steps, "trajectory": outcome(forked)}
        steps = played(env, actions[9:] + plain_end)
        value["continued"] = {"steps": steps, "trajectory": outcome(env)}
        restored = begun(coding_gym.restore(env, taken))
        value["restored"] = {"reset": restored, "steps": played(env, plain_end)}
        again = begun(env.reset(options={"snapshot": taken}))
        steps = played(env, [*repair, *plain_end])
        value["repeated"] = {"reset": again, "steps": steps, "trajectory": outcome(env)}
        value["next"] = begun(env.reset())
    return [(f"forks/{toolset}/{task.task_id}", value)]


def record_trl() -> list[Entry]:
    """Plays four scripted rollouts of TRL's trainer."""
    from scripted_trainer import scripted_batch

    return [("trl/nano", plain(scripted_batch()))]


# ---------------------------------------------------------------- the recording


def parts_of(options: argparse.Namespace) -> list[str]:
    """Returns the parts to be recorded."""
    parts = [options.only] if options.only else list(PARTS)
    if "trl" in parts and find_spec("trl") is None:
        print("TRL is not installed; the part trl is left out")
        parts.remove("trl")
    return parts


def jobs_of(options: argparse.Namespace, parts: Sequence[str]) -> Iterator[Job]:
    """Yields what is to be played, in the order of the recording."""
    numbers = range(len(bundled()))[: options.tasks]
    if "tasks" in parts:
        yield from (partial(record_task, number, options.toolsets) for number in numbers)
    if "vector" in parts:
        yield partial(record_vector, "budgets", "nano")
        yield partial(record_vector, "ends", "editor")
    if "forks" in parts:
        for toolset in options.toolsets:
            yield from (partial(record_fork, number, toolset) for number in numbers[:2])
    if "trl" in parts:
        yield record_trl


def header(options: argparse.Namespace, parts: Sequence[str]) -> dict[str, Any]:
    """Returns which package was recorded, and which parts of the recording are whole."""
    import coding_gym

    package = Path(coding_gym.__file__).parent
    git = ["git", "-C", str(package), "describe", "--always", "--dirty", "--abbrev=40"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    is_whole = options.tasks is None and options.toolsets == list(TOOLSETS)
    return {"package": str(package), "commit": commit, "whole": list(parts) if is_whole else []}


def record(options: argparse.Namespace) -> None:
    """Writes a recording: a header, then one entry a line."""
    began, parts = time.perf_counter(), parts_of(options)
    first = header(options, parts)
    print(f"recording {first['package']} at {first['commit']}")
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(options.jobs, mp_context=context) as pool,
        options.out.open("w", encoding="utf-8") as out,
    ):
        futures: list[Future[list[Entry]]] = [pool.submit(job) for job in jobs_of(options, parts)]
        print(json.dumps({"entry": "", "value": first}), file=out)
        for future in futures:
            for entry, value in future.result():
                print(json.dumps({"entry": entry, "value": value}), file=out, flush=True)
    print(f"duration: {time.perf_counter() - began:.0f} s")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit code."""
    summary, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="record, and write this file")
    parser.add_argument("--only", choices=PARTS, default="", help="only this part")
    parser.add_argument("--tasks", type=int, metavar="N", help="only the first N tasks")
    names = ",".join(TOOLSETS)
    parser.add_argument(
        "--toolsets", type=lambda text: text.split(","), default=list(TOOLSETS), metavar=names
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"))
    parser.add_argument("--examples", type=int, default=1, help="shown of each kind (default: 1)")
    parser.add_argument("--permitted", type=Path, metavar="TOML", help="differences that may be")
    options = parser.parse_args(arguments)
    if options.compare:
        permitted = read_permitted(options.permitted) if options.permitted else []
        old, new = options.compare
        return int(compare(old, new, permitted, options.examples) > 0)
    if not options.out:
        parser.error("give --out or --compare")
    record(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
