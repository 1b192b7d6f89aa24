"""The processes of a sandbox, for the one that serves it: listed, counted, stopped and ended."""

import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager

from coding_gym.sandbox.inside import proc_stat

_STOPPED, _QUIET = "Tt", "TtZX"
_POLL_MS, _NUM_POLLS = 1, 200


def all_but_first(proc: str = "/proc") -> frozenset[int]:
    """Returns the ids of all processes of a pid namespace but its first."""
    return frozenset(int(name) for name in os.listdir(proc) if name.isdecimal()) - {1}


def descendants() -> list[int]:
    """Returns the ids of all processes below this one, which is a child subreaper.

    Parents come before their children: a shell that is ended first says nothing of its command.
    """
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        below = _children(waiting.pop())
        found += below
        waiting += below
    return found


class Processes:
    """All processes of one sandbox but the one that serves it, which adopts their orphans.

    Args:
        list_pids: Lists their ids, ended ones that are not reaped included.
        has_own_signals: Whether a signal to everybody reaches exactly these, all at the same time,
            even those that are being forked. Otherwise they are signalled one by one.
    """

    def __init__(self, list_pids: Callable[[], Iterable[int]], *, has_own_signals: bool) -> None:
        self._list_pids = list_pids
        self._has_own_signals = has_own_signals

    def pids(self) -> frozenset[int]:
        """Returns their ids."""
        return frozenset(self._list_pids())

    def signal(self, number: int) -> None:
        """Sends a signal to all of them, in the order of their list."""
        for pid in (-1,) if self._has_own_signals else self._list_pids():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def end(self) -> dict[int, int]:
        """Ends and reaps all of them; returns their statuses by their ids."""
        ended: dict[int, int] = {}
        while True:
            self.signal(signal.SIGKILL)
            now, are_left = reap(wait=self._has_own_signals)
            ended |= now
            if not are_left:
                return ended
            select.poll().poll(_POLL_MS)

    def end_all_but(self, kept: Set[int]) -> dict[int, int]:
        """As `end`, but for the ``kept`` ones, which are stopped and stay so."""
        ended, _ = reap()
        while self.pids() - kept:
            self.signal(signal.SIGSTOP)  # so that none can start another meanwhile
            for pid in self.pids() - kept:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            select.poll().poll(_POLL_MS)
            ended |= reap()[0]
        return ended

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stops all of them, so that files hold still, and lets them go on afterwards.

        Those that were stopped already stay so. One that the kernel holds, as it does the parent
        of a vfork, is not waited for long: it does nothing either.
        """
        if not _has_children():
            yield
            return
        before = {pid for pid in self.pids() if _is_quiet(pid) and _states(pid) & set(_STOPPED)}
        try:
            self._stop()
            yield
        finally:
            if not before:  # all at once: a process may hide from /proc
                self.signal(signal.SIGCONT)
            for pid in self.pids() - before if before else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _stop(self) -> None:
        # Only the stop of a child is reported, not that of its children.
        for _ in range(_NUM_POLLS):
            self.signal(signal.SIGSTOP)
            if all(map(_is_quiet, self.pids())):
                return
            select.poll().poll(_POLL_MS)


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


def num_threads(pids: Set[int]) -> int:
    """Returns how many threads some processes have, each of which counts as a process."""
    return sum(len(_threads(pid)) for pid in pids)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _is_quiet(pid: int) -> bool:
    return _states(pid) <= set(_QUIET)


def _states(pid: int) -> set[str]:
    """Returns the states of a process's threads: the first may have ended while others run."""
    found = (proc_stat.fields(f"{pid}/task/{thread}") for thread in _threads(pid))
    return {fields[proc_stat.STATE] for fields in found if fields}


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
