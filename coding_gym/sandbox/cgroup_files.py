"""The files by which the kernel's control groups (version 2) are made, read and written."""

import contextlib
import os
import select
import signal
import time
from pathlib import Path

_END_TIMEOUT_S = 5.0


def make(folder: Path) -> None:
    """Makes a group; the kernel fills it with files."""
    folder.mkdir()


def remove(folder: Path) -> None:
    """Ends what is in a group and removes it; fine where it is gone."""
    with contextlib.suppress(OSError):
        _kill(folder)
        _wait_until_empty(folder)
    remove_empty(folder)


def remove_empty(folder: Path) -> None:
    """Removes a group in which nothing is; leaves others alone."""
    with contextlib.suppress(OSError):  # something in it goes on: the next sweep's
        folder.rmdir()


def _kill(folder: Path) -> None:
    try:
        write(folder / "cgroup.kill", "1")  # Linux 5.14
    except FileNotFoundError:
        for pid in read(folder / "cgroup.procs").split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def _wait_until_empty(folder: Path) -> None:
    """Waits until the killed processes have ended; until then the group cannot be removed."""
    with (folder / "cgroup.events").open("rb", buffering=0) as events:
        poller = select.poll()
        poller.register(events, select.POLLPRI)
        deadline = time.monotonic() + _END_TIMEOUT_S
        while b"populated 1" in events.read(256) and (left := deadline - time.monotonic()) > 0:
            poller.poll(left * 1000)
            events.seek(0)


def read(path: Path) -> str:
    """Returns a file's text; nothing where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def write(path: Path, value: str) -> None:
    """Writes one of the kernel's files, which must exist, in one call."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
