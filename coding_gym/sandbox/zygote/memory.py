"""Watches how much memory the processes of a sandbox hold, where no cgroup bounds it.

Init looks from time to time while a command runs, more often the less room there is. A look adds
up what every process holds in private memory, shared memory, swap and page tables; where the sum
is too high a closer one follows, which counts once what several share. Shared anonymous memory
counts by the size of its mapping, since its pages can be kept out of every page table, and each
socket by what its buffers may hold. What a process hides of itself counts as much as it can be.

Not counted: what a mapping of shared anonymous memory held before it was cut down between two
looks; pipes, which the kernel bounds per user; and the kernel's own records, such as those of
mappings and file locks. Between two looks a program may take more than the limit.
"""

import contextlib
import os
import re
import time
from collections.abc import Iterator

from coding_gym.sandbox.zygote.processes import Processes

# A short command is never looked at.
_FIRST_LOOK_S = 0.02
_MIN_INTERVAL_S, _MAX_INTERVAL_S = 0.05, 0.5
# How fast one processor can fill memory, so that the next look comes in time.
_BYTES_PER_S = 4 << 30
# How many times longer than a look takes is none taken.
_LOOK_REST, _MAPPINGS_REST = 20, 50
# A closer look that takes more processor time is given up: there is too much to look at. Time on
# the clock passes on a busy machine too.
_MAX_CLOSE_LOOK_S = 1.0
_SOCKET_BYTES = 512 << 10
_NUM_FREE_SOCKETS = 64

_ANY_KIND = re.compile(rb"^(?:RssAnon|RssShmem|VmSwap|VmPTE):\s+(\d+) kB$", re.MULTILINE)
# No page of these can be in a process twice.
_OWN_KINDS = re.compile(rb"^(?:RssAnon|VmSwap|VmPTE):\s+(\d+) kB$", re.MULTILINE)
_SIZE = re.compile(rb"^VmSize:\s+(\d+) kB$", re.MULTILINE)
_SHMEM = re.compile(rb"^RssShmem:\s+(\d+) kB$", re.MULTILINE)
_TABLES = re.compile(rb"^VmPTE:\s+(\d+) kB$", re.MULTILINE)
# In smaps_rollup; in status, where a process hides what it shares.
_SHARES = re.compile(
    rb"^(?:Pss_Anon|Pss_Shmem|SwapPss|RssAnon|RssShmem|VmSwap):\s+(\d+) kB$", re.MULTILINE
)
# The state of a process, its id, its parent's, and all that is said of its memory.
_FAMILY = re.compile(
    rb"^State:\s+(\w).*^Tgid:\s+(\d+)$.*^PPid:\s+(\d+)$.*^(VmPeak:.*^VmSwap:[^\n]*)",
    re.MULTILINE | re.DOTALL,
)
_SHARED_MAPPING = re.compile(
    rb"^([0-9a-f]+)-([0-9a-f]+) ..[-x]s ([0-9a-f]+) \S+ (\d+) +/dev/zero \(deleted\)$",
    re.MULTILINE,
)
_SOCKETS = re.compile(rb"^sockets: used (\d+)$", re.MULTILINE)


class MemoryWatch:
    """Looks at the processes of a sandbox.

    Args:
        limit_bytes: What they may hold together.
        processes: Lists them.
        owns_network: Whether the network's sockets are all the sandbox's.
        proc: Where the kernel's files of these processes are.

    Attributes:
        next_look: When to ask `is_exceeded` again, on the clock of ``time.monotonic``.
    """

    def __init__(
        self, limit_bytes: int, processes: Processes, *, owns_network: bool, proc: str = "/proc"
    ) -> None:
        self.next_look = 0.0
        self._limit = limit_bytes
        self._processes = processes
        self._owns_network = owns_network
        self._proc = proc
        self._bytes_per_s = _BYTES_PER_S * len(os.sched_getaffinity(0))
        self._extents: dict[bytes, int] = {}
        self._next_mappings = self._next_close_look = 0.0
        self._sum_at_close_look = 0

    def begin(self, now: float) -> None:
        """Takes note that a command starts now, and nothing else runs."""
        self.next_look = now + _FIRST_LOOK_S

    def is_exceeded(self, now: float) -> bool:
        """Looks, whether the processes hold more than they may together."""
        statuses = dict(_memory_of(f"{self._proc}/{pid}") for pid in self._processes.pids())
        hidden = self._sockets() + self._hidden_in_mappings(statuses, now)
        total = sum(_kilobytes(_ANY_KIND, text) for text in statuses.values()) + hidden
        is_exceeded = total > self._limit and (
            any(_kilobytes(_OWN_KINDS, text) > self._limit for text in statuses.values())
            or self._is_exceeded_closely(statuses, total, hidden)
        )
        pause_s = max(0, self._limit - total) / self._bytes_per_s
        took_s = time.monotonic() - now
        pause_s = min(max(pause_s, _MIN_INTERVAL_S), _MAX_INTERVAL_S)
        self.next_look = now + max(pause_s, took_s * _LOOK_REST)
        return is_exceeded

    def _is_exceeded_closely(self, statuses: dict[str, bytes], total: int, hidden: int) -> bool:
        """Counts once what several processes share; not every time, where that takes long."""
        began = time.monotonic()
        has_grown = total > self._sum_at_close_look + self._limit // 4
        if began < self._next_close_look and not has_grown:
            return False
        exact = hidden
        used_s = time.process_time()
        excused = set(_in_vfork(statuses))
        for folder, status in statuses.items():
            if folder not in excused:
                exact += _kilobytes(_TABLES, status)
                exact += _kilobytes(_SHARES, _read(f"{folder}/smaps_rollup", hidden=status))
            if exact > self._limit or time.process_time() - used_s > _MAX_CLOSE_LOOK_S:
                return True
        now = time.monotonic()
        self._next_close_look = now + (now - began) * _LOOK_REST
        self._sum_at_close_look = total
        return False

    def _hidden_in_mappings(self, statuses: dict[str, bytes], now: float) -> int:
        """Returns by how much mappings of shared anonymous memory surpass what is seen of them."""
        sizes = sum(_kilobytes(_SIZE, text) for text in statuses.values())
        if sizes <= self._limit:  # they cannot hide enough
            self._extents.clear()
            return 0
        if now >= self._next_mappings:
            seen: dict[bytes, int] = {}
            for folder, status in statuses.items():
                text = _read(f"{folder}/maps", hidden=status)
                seen[folder.encode()] = max(
                    0, _kilobytes(_SIZE, text) - _kilobytes(_OWN_KINDS, text)
                )
                for begin, end, offset, inode in _SHARED_MAPPING.findall(text):
                    extent = int(offset, 16) + int(end, 16) - int(begin, 16)
                    seen[inode] = max(extent, seen.get(inode, 0), self._extents.get(inode, 0))
            self._extents = seen
            self._next_mappings = now + (time.monotonic() - now) * _MAPPINGS_REST
        shown = sum(_kilobytes(_SHMEM, text) for text in statuses.values())
        return max(0, sum(self._extents.values()) - shown)

    def _sockets(self) -> int:
        """Returns what the buffers of sockets may hold, but for the few that any program has."""
        if not self._owns_network:
            return 0
        found = _SOCKETS.search(_read(f"{self._proc}/net/sockstat"))
        count = int(found[1]) if found else 0
        return max(0, count - _NUM_FREE_SOCKETS) * _SOCKET_BYTES


def _memory_of(process: str) -> tuple[str, bytes]:
    """Returns where the kernel tells of a process's memory, and the status there.

    Its first thread may have ended, which shows nothing then of what the others hold.
    """
    status = _read(f"{process}/status")
    if not _SIZE.search(status):
        with contextlib.suppress(OSError):
            for number in os.listdir(f"{process}/task"):
                thread = f"{process}/task/{number}"
                if _SIZE.search(text := _read(f"{thread}/status")):
                    return thread, text
    return process, status


def _in_vfork(statuses: dict[str, bytes]) -> Iterator[str]:
    """Yields who still runs in the memory of a parent, which waits for it: one for each parent.

    Copies of a parent, which have memory of their own, can be made to look the same.
    """
    found = {folder: _FAMILY.search(text) for folder, text in statuses.items()}
    families = {folder: family.groups() for folder, family in found.items() if family}
    waiting = {own: memory for state, own, _, memory in families.values() if state == b"D"}
    for folder, (_, _, parent, memory) in families.items():
        if waiting.get(parent) == memory:
            del waiting[parent]
            yield folder


def _kilobytes(kind: "re.Pattern[bytes]", text: bytes) -> int:
    """Returns the sum of some lines of a text of the kernel's, in bytes."""
    return sum(map(int, kind.findall(text))) << 10


def _read(path: str, *, hidden: bytes = b"") -> bytes:
    """Returns a file of the kernel's; nothing where its process has ended.

    Args:
        path: Of the file.
        hidden: What to return for one that may not be read, as a process can have it.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            return b"".join(iter(lambda: file.read(1 << 16), b""))
    except PermissionError:
        return hidden
    except OSError:
        return b""
