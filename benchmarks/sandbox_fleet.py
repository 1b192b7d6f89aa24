"""What many sandboxes cost: memory, time to open, and the end of their owner."""

import os
import resource
import subprocess
import sys
import time
from contextlib import ExitStack

from figures import Figure, median, progress
from fixtures import available_bytes, mounts, pidfds, pss_bytes, tree, wait_gone

from coding_gym.sandbox import SandboxSpec, open_sandbox

_NUM_KILLED = 20
_MEGABYTE = 1e6
# Half of the sandboxes have a command running, in a session of its own too.
_OWNER = """
import sys, threading
from coding_gym.sandbox import SandboxSpec, open_sandbox
opened = [open_sandbox(SandboxSpec()) for _ in range(int(sys.argv[1]))]
for sandbox in opened[::2]:
    command = "trap '' TERM HUP; (setsid sleep 1000 &); sleep 1000"
    threading.Thread(target=sandbox.run, args=(command,), daemon=True).start()
for sandbox in opened[1::2]:
    sandbox.write_file("file", b"x" * 1000000)
print("ready", flush=True)
sys.stdin.read()
"""


def idle(rounds: int) -> list[Figure]:
    """Opens many sandboxes, runs one command in each, and looks at what they hold."""
    number = 1000 if rounds >= 50 else 100
    _raise_descriptor_limit()
    open_sandbox(SandboxSpec()).close()  # the zygote is there once, however many there are
    before_pids, before = list(tree(os.getpid())), available_bytes()
    before_pss = pss_bytes(before_pids)
    with ExitStack() as stack:
        began = time.perf_counter()
        sandboxes = [stack.enter_context(open_sandbox(SandboxSpec())) for _ in range(number)]
        opened_s = time.perf_counter() - began
        for sandbox in sandboxes:
            sandbox.run("true")
        used_s = time.perf_counter() - began
        figures = [Figure(name=f"{number:,} opened", value=round(opened_s, 2), unit="s", target=8)]
        figures.append(Figure(name="and a command in each", value=round(used_s, 2), unit="s"))
        system = (before - available_bytes()) / number / _MEGABYTE
        figures.append(_pss(number, before_pss))
        name = "system memory per idle sandbox"
        figures.append(Figure(name=name, value=round(system, 3), unit="MB", target=2))
        began = time.perf_counter()
    figures.append(Figure(name="all closed", value=round(time.perf_counter() - began, 2), unit="s"))
    return figures


def _pss(number: int, before: int) -> Figure:
    """Returns the growth of this process and all below it, the zygote's included."""
    name = "PSS per idle sandbox"
    try:
        grown = (pss_bytes(list(tree(os.getpid()))) - before) / number / _MEGABYTE
    except PermissionError:
        return Figure(name=name, absent="only root may read it of sandboxes")
    return Figure(name=name, value=round(grown, 3), unit="MB", target=1.5)


def killed_owner(rounds: int) -> list[Figure]:
    """Kills owners of sandboxes, and waits until no process of theirs is left."""
    samples = []
    for number in range(max(3, rounds // 20)):
        progress(f"  owner {number + 1}")
        samples.append(_kill_one())
    name = f"owner SIGKILLed with {_NUM_KILLED} sandboxes: until nothing is left"
    return [median(name, samples, "ms", 200)]


def _kill_one() -> float:
    before = mounts()
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(_NUM_KILLED)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        watched = pidfds(list(tree(owner.pid))[1:])
        assert len(watched) > _NUM_KILLED + _NUM_KILLED // 2
        began = time.perf_counter()
        owner.kill()
        num_left = wait_gone(watched, 10)
        took_ms = (time.perf_counter() - began) * 1e3
    for descriptor in watched:
        os.close(descriptor)
    assert num_left == 0, f"{num_left} processes outlived their owner by ten seconds"
    assert not set(mounts()) - set(before), "mounts are left"
    return took_ms


def _raise_descriptor_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
