"""Watches how much memory the processes of a sandbox hold.

Init looks from time to time while a command runs, more often as less memory is left. A look adds
up what every process holds in private memory, shared memory, swap and page tables. Where that, or
the address space, surpasses the limit, memory is counted closely: once where several share it, and
by the size of its mapping where it is shared and anonymous, since such pages can be kept out of
every page table. Each socket counts by what its buffers may hold. What a process hides of itself
counts as much as it can be.

Not counted: what a mapping of shared anonymous memory held before it was cut down between two
looks; pipes, which the kernel bounds per user; and the kernel's own records, such as those of
mappings and file locks. Between two looks a program may take more than the limit.
"""

import contextlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

# A short command is never looked at.
_FIRST_LOOK_S = 0.02
_MIN_INTERVAL_S, _MAX_INTERVAL_S = 0.05, 0.5
# How fast one processor can fill memory, so that the next look comes in time.
_BYTES_PER_S = 4 << 30
# How many times longer than a look takes is none taken.
_REST = 20
# A close count that takes more processor time is given up: there is too much to count. Time on the
# clock passes on a busy machine too.
_MAX_COUNT_S = 1.0
_SOCKET_BYTES = 512 << 10
_NUM_FREE_SOCKETS = 64

_SIZES = re.compile(rb"^(\w+):\s+(\d+) kB$", re.MULTILINE)
_PRIVATE = (b"RssAnon", b"VmSwap", b"VmPTE")
_HELD = (*_PRIVATE, b"RssShmem")
# In smaps_rollup; in status, where a process hides what it shares.
_SHARES = (b"Pss_Anon", b"SwapPss", b"RssAnon", b"VmSwap")
_SHMEM_SHARES = (b"Pss_Shmem", b"RssShmem")
_FAMILY = re.compile(rb"^State:\s+(\w).*^Tgid:\s+(\d+)$.*^PPid:\s+(\d+)$", re.MULTILINE | re.DOTALL)
_SHARED_MAPPING = re.compile(
    rb"^([0-9a-f]+)-([0-9a-f]+) ..[-x]s ([0-9a-f]+) \S+ (\d+) +/dev/zero \(deleted\)$",
    re.MULTILINE,
)
_SOCKETS = re.compile(rb"^sockets: used (\d+)$", re.MULTILINE)


class MemoryWatch:
    """Looks at the processes of a sandbox.

    Args:
        limit_bytes: Limit on their total memory.
        pids: Lists their ids.
        owns_network: Whether the network's sockets are all the sandbox's.
        proc: Where the kernel's files of these processes are.

    Attributes:
        next_look: When to ask `is_exceeded` again, on the clock of ``time.monotonic``.
    """

    def __init__(
        self,
        limit_bytes: int,
        pids: Callable[[], frozenset[int]],
        *,
        owns_network: bool,
        proc: str = "/proc",
    ) -> None:
        self.next_look = 0.0
        self._limit = limit_bytes
        self._pids = pids
        self._owns_network = owns_network
        self._proc = proc
        self._bytes_per_s = _BYTES_PER_S * len(os.sched_getaffinity(0))
        self._extents: dict[bytes, int] = {}

    def begin(self, now: float) -> None:
        """Notes that a command starts now, and that nothing else runs."""
        self.next_look = now + _FIRST_LOOK_S

    def is_exceeded(self, now: float) -> bool:
        """Returns whether the processes together hold more than the limit."""
        statuses = dict(_status_of(f"{self._proc}/{pid}") for pid in self._pids())
        sizes = {folder: _sizes(text) for folder, text in statuses.items()}
        total = sum(_total(own, _HELD) for own in sizes.values())
        address_space = sum(own[b"VmSize"] for own in sizes.values())
        sockets = self._sockets()
        if max(total + sockets, address_space) > self._limit:
            total = self._counted(statuses, sizes)
        else:
            self._extents = {}
        total += sockets
        pause_s = max(0, self._limit - total) / self._bytes_per_s
        took_s = time.monotonic() - now
        pause_s = min(max(pause_s, _MIN_INTERVAL_S), _MAX_INTERVAL_S)
        self.next_look = now + max(pause_s, took_s * _REST)
        return total > self._limit

    def _counted(self, statuses: Mapping[str, bytes], sizes: Mapping[str, Counter[bytes]]) -> int:
        """Counts once what several processes share, and shared mappings by their size."""
        began_s = time.process_time()
        excused = set(_in_vfork(statuses, sizes))
        private = shared = 0
        extents: dict[bytes, int] = {}
        for folder, own in sizes.items():
            if folder not in excused:
                rollup = _sizes(_read(f"{folder}/smaps_rollup", hidden=statuses[folder]))
                private += own[b"VmPTE"] + _total(rollup, _SHARES)
                shared += _total(rollup, _SHMEM_SHARES)
            maps = _read(f"{folder}/maps", hidden=statuses[folder])
            hidden = _sizes(maps)
            extents[folder.encode()] = max(0, hidden[b"VmSize"] - _total(hidden, _PRIVATE))
            for begin, end, offset, inode in _SHARED_MAPPING.findall(maps):
                extent = int(offset, 16) + int(end, 16) - int(begin, 16)
                extents[inode] = max(extent, extents.get(inode, 0), self._extents.get(inode, 0))
            if private > self._limit or time.process_time() - began_s > _MAX_COUNT_S:
                return max(private, self._limit + 1)
        self._extents = extents
        return private + max(shared, sum(extents.values()))

    def _sockets(self) -> int:
        """Returns what the buffers of sockets may hold, but for the few that any program has."""
        if not self._owns_network:
            return 0
        found = _SOCKETS.search(_read(f"{self._proc}/net/sockstat"))
        count = int(found[1]) if found else 0
        return max(0, count - _NUM_FREE_SOCKETS) * _SOCKET_BYTES


def _status_of(process: str) -> tuple[str, bytes]:
    """Returns the folder in /proc of a process's memory, and the status there.

    Its first thread may have ended, which shows nothing then of what the others hold.
    """
    status = _read(f"{process}/status")
    if not _sizes(status)[b"VmSize"]:
        with contextlib.suppress(OSError):
            for number in os.listdir(f"{process}/task"):
                thread = f"{process}/task/{number}"
                if _sizes(text := _read(f"{thread}/status"))[b"VmSize"]:
                    return thread, text
    return process, status


def _in_vfork(statuses: Mapping[str, bytes], sizes: Mapping[str, Counter[bytes]]) -> Iterator[str]:
    """Yields processes that run in the memory of a waiting parent: one for each parent.

    Copies of a parent, which have memory of their own, can be made to look the same.
    """
    found = {folder: _FAMILY.search(text) for folder, text in statuses.items()}
    families = {folder: family.groups() for folder, family in found.items() if family}
    waiting = {own: sizes[folder] for folder, (state, own, _) in families.items() if state == b"D"}
    for folder, (_, _, parent) in families.items():
        if waiting.get(parent) == sizes[folder]:
            del waiting[parent]
            yield folder


def _sizes(text: bytes) -> Counter[bytes]:
    """Returns the sizes in a text of the kernel's, in bytes, by their names."""
    return Counter({name: int(size) << 10 for name, size in _SIZES.findall(text)})


def _total(sizes: Counter[bytes], names: Iterable[bytes]) -> int:
    return sum(sizes[name] for name in names)


def _read(path: str, *, hidden: bytes = b"") -> bytes:
    """Returns a file of the kernel's; nothing where its process has ended.

    Args:
        path: Of the file.
        hidden: Returned for a file that may not be read, as a process can make it.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            return b"".join(iter(lambda: file.read(1 << 16), b""))
    except PermissionError:
        return hidden
    except OSError:
        return b""
