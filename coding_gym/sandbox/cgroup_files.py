"""The files by which the kernel's control groups (version 2) are made, read and written."""

import contextlib
import os
import signal
from pathlib import Path


def make(folder: Path) -> None:
    """Makes a group; the kernel fills it with files."""
    folder.mkdir()


def remove(folder: Path) -> None:
    """Ends what is in a group and removes it; fine where it is gone."""
    with contextlib.suppress(OSError):
        _kill(folder)
    remove_empty(folder)


def remove_empty(folder: Path) -> None:
    """Removes a group in which nothing is; leaves others alone."""
    with contextlib.suppress(OSError):  # something in it may still be ending: the next sweep's
        folder.rmdir()


def _kill(folder: Path) -> None:
    try:
        write(folder / "cgroup.kill", "1")  # Linux 5.14
    except FileNotFoundError:
        for pid in read(folder / "cgroup.procs").split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


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
