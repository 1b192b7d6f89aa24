"""What one command costs: in a sandbox, and against what else could run it."""

import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from figures import Figure, in_blocks, interleaved, median, ratio
from fixtures import tool

from coding_gym.sandbox import Sandbox, SandboxSpec, default_interpreter, open_sandbox
from coding_gym.sandbox.folder_cache import FolderCache
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.workspace.pytest_layer import PytestLayers

Works = dict[str, Callable[[], object]]

BARE = ["bash", "-c", "true"]
# What a policy takes at the very least to say the next command.
_THINKING_S = 0.004
_STAMP = "import time; print(time.monotonic())"
_BWRAP = ["--ro-bind", "/", "/", "--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc"]  # noqa: S108 - inside
_BWRAP += ["--unshare-all", "--new-session"]
_WAITING = SandboxSpec(shell="waiting")
_NUM_SANDBOXES, _NUM_DRIVERS = 64, 8
# Two of these are what this machine can do at best with two processors.
_SPAWNER = """
import os, sys, time
bash, wanted_s = sys.argv[1], float(sys.argv[2])
env, count, end = dict(os.environ), 0, time.perf_counter() + wanted_s
while time.perf_counter() < end:
    os.waitpid(os.posix_spawn(bash, ["bash", "-c", "true"], env), 0)
    count += 1
print(count / wanted_s)
"""


def steps(rounds: int) -> list[Figure]:
    """Times one command in each way, in turn."""
    with ExitStack() as stack:
        fresh = stack.enter_context(open_sandbox(SandboxSpec()))
        waiting = stack.enter_context(open_sandbox(_WAITING))

        def think() -> None:
            time.sleep(_THINKING_S)

        works: Works = {
            "bare": lambda: subprocess.run(BARE, check=True),
            "fresh": lambda: fresh.run("true"),
            "think": think,
            "waiting": lambda: waiting.run("true"),
        }
        took = interleaved(works, rounds)
    return [
        ratio('sandbox.run("true") / bare subprocess', took["fresh"], took["bare"], 1.05),
        ratio("the same, a bash waiting, 4 ms between", took["waiting"], took["bare"], 0.4),
    ]


def preloaded(rounds: int) -> list[Figure]:
    """Times Python to its first line in fresh sandboxes: forked with pytest, and cold."""
    backend, took = NamespaceBackend(), defaultdict[str, list[float]](list)
    with TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        tree.mkdir()
        layers = PytestLayers(FolderCache(Path(folder, "layers")), backend)
        _, spec = layers.get(default_interpreter())
        spec = replace(spec, layers=(tree,))
        warm = replace(spec, preload=("pytest",))
        site = str(default_interpreter().site_packages)
        imports = f"import sys; sys.path.append({site!r}); import pytest; {_STAMP}"
        works = {"forked": (warm, imports), "python": (spec, _STAMP), "pytest": (spec, imports)}
        for number in range(rounds + 1):
            for name, (wanted, source) in works.items():
                with backend.open(wanted) as sandbox:
                    sandbox.run("true")
                    began = time.monotonic()
                    ended = float(sandbox.run_python(source).output)
                if number:  # the first one starts the preloader
                    took[name].append((ended - began) * 1e3)
    name = "preloaded interpreter with pytest to its first line"
    return [
        median(name, took["forked"], "ms", 4),
        ratio("the same / a cold python", took["forked"], took["python"]),
        ratio("the same / a cold python that imports pytest", took["forked"], took["pytest"]),
    ]


def bubblewrap(rounds: int) -> list[Figure]:
    """Times one ``bwrap`` per command against commands in a sandbox."""
    name = "one bwrap per command / sandbox.run"
    if reason := tool("bwrap"):
        return [Figure(name=name, absent=f"{reason}; run: apt-get install bubblewrap")]
    argv = [shutil.which("bwrap") or "bwrap", *_BWRAP, *BARE]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        return [Figure(name=name, absent=f"bwrap fails here: {done.stderr.strip()}")]
    with open_sandbox(SandboxSpec()) as sandbox:
        works: Works = {
            "bwrap": lambda: subprocess.run(argv, check=True),
            "ours": lambda: sandbox.run("true"),
        }
        took, mixed = in_blocks(works, rounds), interleaved(works, rounds)
    return [
        ratio(name, took["bwrap"], took["ours"], 4, is_floor=True),
        ratio(f"{name}, one by one in turn", mixed["bwrap"], mixed["ours"]),
    ]


def throughput(rounds: int) -> list[Figure]:
    """Counts commands per second over many sandboxes, and of two processes that only spawn."""
    seconds = 1.0 if rounds >= 50 else 0.3
    ours: list[float] = []
    bare: list[float] = []
    with ExitStack() as stack:
        sandboxes = [
            stack.enter_context(open_sandbox(SandboxSpec())) for _ in range(_NUM_SANDBOXES)
        ]
        for _ in range(max(3, rounds // 20)):
            ours.append(_commands_per_s(sandboxes, seconds))
            bare.append(spawned_per_s(seconds))
    name = f"commands/s, {_NUM_SANDBOXES} sandboxes, {_NUM_DRIVERS} in flight / two bare spawners"
    details: dict[str, Any] = {"spawners": 2, "seconds": seconds}
    return [
        ratio(name, ours, bare, 0.9, is_floor=True),
        Figure(name="commands/s", value=round(sorted(ours)[len(ours) // 2]), details=details),
    ]


def _commands_per_s(sandboxes: list[Sandbox], seconds: float) -> float:
    """Returns commands per second; each of the drivers takes its sandboxes in turn."""
    end = time.perf_counter() + seconds

    def drive(number: int) -> int:
        count = 0
        mine = sandboxes[number::_NUM_DRIVERS]
        while time.perf_counter() < end:
            mine[count % len(mine)].run("true")
            count += 1
        return count

    with ThreadPoolExecutor(_NUM_DRIVERS) as pool:
        return sum(pool.map(drive, range(_NUM_DRIVERS))) / seconds


def spawned_per_s(seconds: float) -> float:
    """Returns commands per second of two processes that only spawn them."""
    python = shutil.which("python3") or "python3"
    bash = shutil.which("bash") or "/bin/bash"
    started = [
        subprocess.Popen(
            [python, "-I", "-S", "-c", _SPAWNER, bash, str(seconds)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    return sum(float(process.communicate()[0]) for process in started)
