"""The processes of a sandbox, for the one that serves it: listed, reaped, ended, and their memory.

Init looks from time to time while a command runs, more often as less memory is left. A look adds
up what every process holds in private memory, shared memory and swap. Above the limit, memory that
several processes share is counted once.

Not counted: page tables, sockets, pipes, other records of the kernel, and shared memory that no
process has mapped any more. Between two looks a program may take more than the limit.
"""

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping

# A short command is never looked at.
_FIRST_LOOK_S = 0.02
_MIN_INTERVAL_S, _MAX_INTERVAL_S = 0.05, 0.5
# How fast one processor can fill memory, so that the next look comes in time.
_BYTES_PER_S = 4 << 30
# How many times longer than a look takes is none taken.
_REST = 20

_HELD = re.compile(rb"^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$", re.MULTILINE)
_SHARES = re.compile(rb"^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$", re.MULTILINE)
_FAMILY = re.compile(rb"^State:\s+(\w).*^Tgid:\s+(\d+)$.*^PPid:\s+(\d+)$", re.MULTILINE | re.DOTALL)


def all_but_first() -> frozenset[int]:
    """Returns the ids of all processes of a pid namespace but its first."""
    return frozenset(int(name) for name in os.listdir("/proc") if name.isdecimal()) - {1}


def descendants() -> frozenset[int]:
    """Returns the ids of all processes below this one, which is a child subreaper."""
    pids: set[int] = set()
    pending = [os.getpid()]
    while pending:
        below = _children(pending.pop())
        pids.update(below)
        pending += below
    return frozenset(pids)


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


class MemoryWatch:
    """Looks at the processes of a sandbox.

    Args:
        limit_bytes: Limit on their total memory.
        pids: Lists their ids.

    Attributes:
        next_look: When to ask `is_exceeded` again, on the clock of ``time.monotonic``.
    """

    def __init__(self, limit_bytes: int, pids: Callable[[], frozenset[int]]) -> None:
        self.next_look = 0.0
        self._limit = limit_bytes
        self._pids = pids
        self._bytes_per_s = _BYTES_PER_S * len(os.sched_getaffinity(0))

    def begin(self, now: float) -> None:
        """Notes that a command starts now, and that nothing else runs."""
        self.next_look = now + _FIRST_LOOK_S

    def is_exceeded(self, now: float) -> bool:
        """Returns whether the processes together hold more than the limit."""
        statuses = dict(_status_of(f"/proc/{pid}") for pid in self._pids())
        held = {folder: _total(_HELD, text) for folder, text in statuses.items()}
        total = sum(held.values())
        if total > self._limit:
            for folder in _in_vfork(statuses, held):
                del held[folder]
            total = sum(_share(folder, num_bytes) for folder, num_bytes in held.items())
        pause_s = max(0, self._limit - total) / self._bytes_per_s
        pause_s = min(max(pause_s, _MIN_INTERVAL_S), _MAX_INTERVAL_S)
        self.next_look = now + max(pause_s, (time.monotonic() - now) * _REST)
        return total > self._limit


def _status_of(process: str) -> tuple[str, bytes]:
    """Returns the folder in /proc of a process's memory, and the status there.

    Its first thread may have ended, which shows nothing then of what the others hold.
    """
    status = _read(f"{process}/status")
    if b"VmSize" not in status:
        with contextlib.suppress(OSError):
            for number in os.listdir(f"{process}/task"):
                thread = f"{process}/task/{number}"
                if b"VmSize" in (text := _read(f"{thread}/status")):
                    return thread, text
    return process, status


def _in_vfork(statuses: Mapping[str, bytes], held: Mapping[str, int]) -> Iterator[str]:
    """Yields processes that run in the memory of a waiting parent: one for each parent.

    Copies of a parent, which have memory of their own, can be made to look the same.
    """
    matches = {folder: _FAMILY.search(text) for folder, text in statuses.items()}
    families = {folder: family.groups() for folder, family in matches.items() if family}
    waiting = {pid: held[folder] for folder, (state, pid, _) in families.items() if state == b"D"}
    for folder, (_, _, parent) in families.items():
        if waiting.get(parent) == held[folder]:
            del waiting[parent]
            yield folder


def _share(folder: str, held: int) -> int:
    """Returns a process's share of its memory; all of it where it hides its share."""
    try:
        with open(f"{folder}/smaps_rollup", "rb") as file:
            return _total(_SHARES, file.read())
    except PermissionError:
        return held
    except OSError:  # it ended
        return 0


def _total(sizes: re.Pattern[bytes], text: bytes) -> int:
    return sum(int(size) for size in sizes.findall(text)) << 10


def _read(path: str) -> bytes:
    """Returns a file of the kernel's; nothing where its process has ended."""
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
        return file.read()
    return b""
