"""The processes of a sandbox, for the one that serves it: listed, reaped and ended."""

import contextlib
import os
import signal


def all_but_first(proc: str = "/proc") -> frozenset[int]:
    """Returns the ids of all processes of a pid namespace but its first."""
    return frozenset(int(name) for name in os.listdir(proc) if name.isdecimal()) - {1}


def descendants() -> frozenset[int]:
    """Returns the ids of all processes below this one, which is a child subreaper."""
    found: set[int] = set()
    pending = [os.getpid()]
    while pending:
        below = _children(pending.pop())
        found.update(below)
        pending += below
    return frozenset(found)


def end_all() -> dict[int, int]:
    """Ends every process of the sandbox but this one; returns the statuses of those it reaps.

    This process is the first of its pid namespace, or the sandbox has a uid of its own. So one
    signal to everybody reaches all other processes of the sandbox, those that are being forked
    included, and no other.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    return reap(wait=True)[0]


def reap(*, wait: bool = False) -> tuple[dict[int, int], bool]:
    """Reaps ended children, or waits for all; returns their statuses, and whether any is left."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, 0 if wait else os.WNOHANG)
        except ChildProcessError:
            return ended, False
        if pid == 0:
            return ended, True
        ended[pid] = status


def _children(pid: int) -> list[int]:
    children = b""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children += file.read()
    return [int(child) for child in children.split()]
