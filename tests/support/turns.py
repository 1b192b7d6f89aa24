"""Tests that share the machine, and tests that have it to themselves."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Takes a lock that one test alone or many other tests together may hold.

    Whoever waits for it holds a second lock, so that tests which come later cannot keep overtaking
    one that waits to be alone.
    """
    with (folder / "gate").open("w") as gate, (folder / "running").open("w") as running:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(running, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        try:
            yield
        finally:  # a process that a test left behind may hold the file open
            fcntl.flock(running, fcntl.LOCK_UN)
