"""The processes below one, and how they end."""

import contextlib
import os
import re
import select
import signal

_PAUSE_S = 0.005
_HELD = re.compile(rb"^(?:RssAnon|RssShmem|VmSwap|VmPTE):\s+(\d+) kB$", re.MULTILINE)


def find(root: int) -> list[int]:
    """Returns the pids of all processes below ``root``, dead but unreaped ones among them.

    Needs a /proc that shows them. A process whose parent ended is found where ``root``, or one
    below it, is a child subreaper.
    """
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = _children(waiting.pop())
        found += below
        waiting += below
    return found


def end(statuses: dict[int, int] | None = None, *, is_scoped: bool) -> int:
    """Kills every process below this one, reaps them, and returns how many children there were.

    Args:
        statuses: As for `reap`.
        is_scoped: Whether a Landlock domain keeps the signals of this process inside it. Then one
            call reaches all of them at once, those too that are being forked.
    """
    count = 0
    while True:
        if is_scoped:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(-1, signal.SIGKILL)
        else:
            for pid in find(os.getpid()):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        reaped, others = reap(statuses)
        count += reaped
        if not others:
            return count
        select.select([], [], [], _PAUSE_S)


def reap(statuses: dict[int, int] | None = None) -> tuple[int, bool]:
    """Reaps ended children; returns how many, and whether others are left.

    Args:
        statuses: Takes the wait statuses of those whose pids are in it, which are not counted.
    """
    count = 0
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return count, False
        if pid == 0:
            return count, True
        if statuses is not None and pid in statuses:
            statuses[pid] = status
        else:
            count += 1


def num_tasks() -> int:
    """Returns how many threads the processes below this one have; ended ones count until reaped."""
    return sum(len(_threads(pid)) for pid in find(os.getpid()))


def memory_bytes() -> int:
    """Returns what the processes below this one hold: private and shared memory, and swap."""
    total = 0
    for pid in find(os.getpid()):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
            total += sum(map(int, _HELD.findall(file.read()))) << 10
    return total


def _children(pid: int) -> list[int]:
    children = b""
    for thread in _threads(pid):
        with (
            contextlib.suppress(OSError),
            open(f"/proc/{pid}/task/{thread}/children", "rb") as file,
        ):
            children += file.read()
    return [int(child) for child in children.split()]


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
