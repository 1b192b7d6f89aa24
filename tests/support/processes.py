"""What runs on this machine."""

import gc
import os
import select
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path


def children(pid: int) -> list[int]:
    """Process ids of the children of ``pid``; none where it has ended."""
    found: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, listing.read_text(encoding="ascii").split())
    return found


def descendants(pid: int) -> list[int]:
    """Process ids below ``pid``, children before grandchildren."""
    return [one for child in children(pid) for one in (child, *descendants(child))]


def running(program: str, below: int) -> list[int]:
    """Ids of the processes below ``below`` that run a program with that name."""
    found = []
    for pid in descendants(below):
        with suppress(OSError):  # it has ended
            if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == program:
                found.append(pid)
    return found


def left_by_dropping(make: Callable[[], object]) -> set[int]:
    """Returns the processes of what ``make`` returns that outlive the last reference to it."""
    before = set(descendants(os.getpid()))
    made = make()
    assert set(descendants(os.getpid())) - before
    del made
    gc.collect()
    return set(descendants(os.getpid())) - before


def wait_gone(pids: Iterable[int], timeout_s: float) -> list[int]:
    """Returns those of the processes that still run when the time is up."""
    deadline = time.monotonic() + timeout_s
    left = []
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            poller = select.poll()
            poller.register(descriptor, select.POLLIN)
            if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
                left.append(pid)
        finally:
            os.close(descriptor)
    return left


def num_descriptors(pid: int | str = "self") -> int:
    """How many files a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
