"""The processes of a sandbox, as its first one sees them."""

import contextlib
import os
import select
import signal
from collections.abc import Callable, Set

_PAUSE_MS = 1


def pids() -> frozenset[int]:
    """Returns the ids of all processes but the first, ended ones that nobody reaped included."""
    return frozenset(int(name) for name in os.listdir("/proc") if name.isdecimal()) - {1}


def num_threads(of: Set[int]) -> int:
    """Returns how many threads some processes have, each of which counts as a process."""
    count = 0
    for pid in of:
        with contextlib.suppress(OSError):  # it ended
            count += len(os.listdir(f"/proc/{pid}/task"))
    return count


def reap() -> None:
    """Reaps what has ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def kill_all() -> None:
    """Ends all processes but the first, and reaps them."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(-1, signal.SIGKILL)
        while True:
            os.wait()


def end_all_but(kept: Set[int], reap: Callable[[], tuple[int, bool]]) -> int:
    """Ends all processes but the first and the given ones, which stay stopped.

    Args:
        kept: Ids of processes that are stopped.
        reap: Reaps what has ended; returns how many that were, and whether any are left.
    """
    count = reap()[0]
    while pids() - kept:
        os.kill(-1, signal.SIGSTOP)  # so that none can start another meanwhile
        for pid in pids() - kept:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        select.poll().poll(_PAUSE_MS)
        count += reap()[0]
    return count
