"""Lists, reaps and kills the processes of a sandbox, and checks their memory.

The first process checks memory periodically while a command runs. A check sums the private memory,
shared memory, swap and page tables of all processes. If this sum is above the limit, a slower
check follows, which counts memory that several processes share once.

Not counted: sockets, pipes, other kernel objects, and shared memory that is mapped by no process.
Between two checks a program can exceed the limit.
"""

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping

# Shorter commands are never checked.
_FIRST_CHECK_S = 0.02
_INTERVAL_S = 0.05
# The pause after a check is at least this many times the duration of the check.
_PAUSE_FACTOR = 20

_SIZES = re.compile(rb"^(?:RssAnon|RssShmem|VmSwap|VmPTE):\s+(\d+) kB$", re.MULTILINE)
_TABLES = re.compile(rb"^VmPTE:\s+(\d+) kB$", re.MULTILINE)
_SHARES = re.compile(rb"^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$", re.MULTILINE)
_STATUS = re.compile(rb"^State:\s+(\w).*^Tgid:\s+(\d+)$.*^PPid:\s+(\d+)$", re.MULTILINE | re.DOTALL)


def all_but_first() -> frozenset[int]:
    """Returns the ids of all processes of a pid namespace except its first."""
    return frozenset(int(name) for name in os.listdir("/proc") if name.isdecimal()) - {1}


def descendants() -> frozenset[int]:
    """Returns the ids of all descendants of this process, which is a child subreaper."""
    pids: set[int] = set()
    pending_pids = [os.getpid()]
    while pending_pids:
        children = _children(pending_pids.pop())
        pids.update(children)
        pending_pids += children
    return frozenset(pids)


def end_all() -> dict[int, int]:
    """Kills all other processes of the sandbox; returns the statuses of the children by pid.

    This process is the first of its pid namespace, or the sandbox has a separate uid. So a signal
    to pid -1 reaches exactly the other processes of the sandbox, including new forks.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    return reap(wait=True)[0]


def reap(*, wait: bool = False) -> tuple[dict[int, int], bool]:
    """Reaps ended children, or waits for all; returns statuses by pid, and whether any remain."""
    statuses: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, 0 if wait else os.WNOHANG)
        except ChildProcessError:
            return statuses, False
        if pid == 0:
            return statuses, True
        statuses[pid] = status


def _children(pid: int) -> list[int]:
    children = b""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children += file.read()
    return [int(child) for child in children.split()]


class MemoryWatch:
    """Checks the memory of a sandbox's processes.

    Args:
        limit_bytes: Limit on the total memory of the processes.
        pids: Returns the ids of the processes.

    Attributes:
        next_check: Time of the next call of `is_exceeded`, on the clock of ``time.monotonic``.
    """

    def __init__(self, limit_bytes: int, pids: Callable[[], frozenset[int]]) -> None:
        self.next_check = 0.0
        self._limit = limit_bytes
        self._pids = pids

    def begin(self, now: float) -> None:
        """Schedules the first check of a new command."""
        self.next_check = now + _FIRST_CHECK_S

    def is_exceeded(self, now: float) -> bool:
        """Returns whether the processes together hold more than the limit."""
        statuses = dict(_status_of(f"/proc/{pid}") for pid in self._pids())
        sizes = {folder: _total(_SIZES, text) for folder, text in statuses.items()}
        total = sum(sizes.values())
        if total > self._limit:
            for folder in _in_vfork(statuses, sizes):
                del sizes[folder]
            total = sum(_share(folder, statuses[folder], sizes[folder]) for folder in sizes)
        self.next_check = now + max(_INTERVAL_S, (time.monotonic() - now) * _PAUSE_FACTOR)
        return total > self._limit


def _status_of(process: str) -> tuple[str, bytes]:
    """Returns the /proc folder and ``status`` of a process, or of a thread if the first ended."""
    status = _read(f"{process}/status")
    if b"VmSize" not in status:
        with contextlib.suppress(OSError):
            for number in os.listdir(f"{process}/task"):
                thread = f"{process}/task/{number}"
                if b"VmSize" in (text := _read(f"{thread}/status")):
                    return thread, text
    return process, status


def _in_vfork(statuses: Mapping[str, bytes], sizes: Mapping[str, int]) -> Iterator[str]:
    """Yields, for each parent that waits in vfork, the child that runs in the parent's memory.

    Otherwise the memory that both share would be counted twice. A child is recognised by its size,
    which equals the parent's; a fork with separate memory can have an equal size.
    """
    matches = {folder: _STATUS.search(text) for folder, text in statuses.items()}
    rows = {folder: match.groups() for folder, match in matches.items() if match}
    vfork_sizes = {pid: sizes[folder] for folder, (state, pid, _) in rows.items() if state == b"D"}
    for folder, (_, _, parent) in rows.items():
        if vfork_sizes.get(parent) == sizes[folder]:
            del vfork_sizes[parent]
            yield folder


def _share(folder: str, status: bytes, size: int) -> int:
    """Returns a process's proportional share of its memory; ``size`` if access is denied."""
    try:
        with open(f"{folder}/smaps_rollup", "rb") as file:
            return _total(_SHARES, file.read()) + _total(_TABLES, status)
    except PermissionError:
        return size
    except OSError:  # the process ended
        return 0


def _total(pattern: re.Pattern[bytes], text: bytes) -> int:
    """Returns the sum of the sizes in a text, in bytes."""
    return sum(int(size) for size in pattern.findall(text)) << 10


def _read(path: str) -> bytes:
    """Returns the content of a file in /proc; b"" if the process has ended."""
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
        return file.read()
    return b""
