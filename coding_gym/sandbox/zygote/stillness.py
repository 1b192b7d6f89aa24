"""Stops every process of a sandbox for a moment, so that its files hold still."""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_STOPPED, _QUIET = "Tt", "TtZX"
_POLL_MS, _NUM_POLLS = 1, 200


@contextmanager
def stopped() -> Iterator[None]:
    """Stops all processes but this one, pid 1 of their namespace, and lets them go on afterwards.

    Those that were stopped already stay so. One that the kernel holds, as it does the parent of
    a vfork, is not waited for: it does nothing either.
    """
    if not _has_children():
        yield
        return
    before = {pid for pid, state in _states() if state in _STOPPED}
    os.kill(-1, signal.SIGSTOP)
    try:
        _wait_until_quiet()
        yield
    finally:
        _go_on(before)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _go_on(but_not: set[int]) -> None:
    # All at once where that is right: a process may hide from /proc.
    pids = [pid for pid, _ in _states() if pid not in but_not] if but_not else [-1]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _wait_until_quiet() -> None:
    # Only the stop of a child is reported, not that of its children.
    for _ in range(_NUM_POLLS):
        if all(state in _QUIET for _, state in _states()):
            return
        select.poll().poll(_POLL_MS)


def _states() -> Iterator[tuple[int, str]]:
    """Yields pid and state of every process but this one."""
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and int(entry) != os.getpid():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    # The name, in parentheses, may hold anything; the state follows it.
                    state = file.read().rpartition(")")[2].split()[0]
            except OSError:  # it ended
                continue
            yield int(entry), state
