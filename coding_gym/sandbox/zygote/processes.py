"""The processes of a sandbox, as the process that serves it sees them: listed, stopped, ended."""

import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from typing import Protocol

# Reaps ended children; returns how many of them count, and whether any are left.
Reap = Callable[[bool], tuple[int, bool]]

_STOPPED, _QUIET = "Tt", "TtZX"
_POLL_MS, _NUM_POLLS = 1, 200


class Processes(Protocol):
    """All processes of one sandbox but the one that serves it, which adopts their orphans.

    Attributes:
        are_reached_at_once: Whether a signal reaches all of them at the same time, even those that
            are being forked.
    """

    are_reached_at_once: bool

    def pids(self) -> frozenset[int]:
        """Returns their ids, ended ones that are not reaped included."""
        ...

    def signal(self, number: int) -> None:
        """Sends a signal to all of them."""
        ...


class NamespaceProcesses:
    """Those of a pid namespace whose first process this is.

    Args:
        proc: Where the kernel shows them.
    """

    are_reached_at_once = True

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc

    def pids(self) -> frozenset[int]:
        """Returns their ids, ended ones that are not reaped included."""
        return frozenset(int(name) for name in os.listdir(self._proc) if name.isdecimal()) - {1}

    def signal(self, number: int) -> None:
        """Sends a signal to all of them."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, number)


class Descendants:
    """Those below this process, which is a child subreaper and may read ``/proc``.

    Args:
        is_scoped: Whether a Landlock domain keeps the signals of this process inside it. Otherwise
            they are found and signalled one by one.
    """

    def __init__(self, *, is_scoped: bool) -> None:
        self.are_reached_at_once = is_scoped

    def pids(self) -> frozenset[int]:
        """Returns their ids, ended ones that are not reaped included."""
        found: list[int] = []
        waiting = [os.getpid()]
        while waiting:
            below = _children(waiting.pop())
            found += below
            waiting += below
        return frozenset(found)

    def signal(self, number: int) -> None:
        """Sends a signal to all of them."""
        for pid in (-1,) if self.are_reached_at_once else self.pids():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def reap_any(wait: bool) -> tuple[int, bool]:
    """Reaps ended children; returns how many, and whether others are left."""
    count = 0
    while True:
        try:
            pid, _ = os.waitpid(-1, 0 if wait else os.WNOHANG)
        except ChildProcessError:
            return count, False
        if pid == 0:
            return count, True
        count += 1


def end_all(processes: Processes, reap: Reap = reap_any) -> int:
    """Ends all processes of a sandbox and returns how many ``reap`` counted."""
    count = 0
    while True:
        processes.signal(signal.SIGKILL)
        ended, are_left = reap(processes.are_reached_at_once)
        count += ended
        if not are_left:
            return count
        select.poll().poll(_POLL_MS)


def end_all_but(kept: Set[int], processes: Processes, reap: Reap) -> int:
    """Ends all processes but the ``kept`` ones, which are stopped and stay so."""
    count, _ = reap(False)
    while processes.pids() - kept:
        processes.signal(signal.SIGSTOP)  # so that none can start another meanwhile
        for pid in processes.pids() - kept:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        select.poll().poll(_POLL_MS)
        count += reap(False)[0]
    return count


def num_threads(pids: Set[int]) -> int:
    """Returns how many threads some processes have, each of which counts as a process."""
    return sum(len(_threads(pid)) for pid in pids)


@contextmanager
def stopped(processes: Processes) -> Iterator[None]:
    """Stops all processes, so that files hold still, and lets them go on afterwards.

    Those that were stopped already stay so. One that the kernel holds, as it does the parent of
    a vfork, is not waited for: it does nothing either.
    """
    if not _has_children():
        yield
        return
    before = {pid for pid, state in _states(processes) if state in _STOPPED}
    try:
        _stop(processes)
        yield
    finally:
        if not before:  # all at once: a process may hide from /proc
            processes.signal(signal.SIGCONT)
        for pid in processes.pids() - before if before else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _stop(processes: Processes) -> None:
    # Only the stop of a child is reported, not that of its children.
    for _ in range(_NUM_POLLS):
        processes.signal(signal.SIGSTOP)
        if all(state in _QUIET for _, state in _states(processes)):
            return
        select.poll().poll(_POLL_MS)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _states(processes: Processes) -> Iterator[tuple[int, str]]:
    for pid in processes.pids():
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                # The name, in parentheses, may hold anything; the state follows it.
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:  # it ended
            continue
        yield pid, state


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
