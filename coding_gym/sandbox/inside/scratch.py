"""Removes leftovers of overlays and builds on a disk."""

import contextlib
import os

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(folder: str) -> None:
    """Removes a folder and all in it, as far as possible; does nothing where there is none.

    An overlay's work folder has no permissions at all, and a policy may have taken those of its
    own folders, so each gets them back on the way down. A policy may also have nested them deeper
    than a path can name, or a stack can follow: one is open at a time, and the way back is ``..``.
    Entries that another process removes meanwhile are skipped.
    """
    with contextlib.suppress(OSError):
        here = _enter(folder)
        way: list[str] = []
        try:
            while (name := _first_folder(here)) or way:
                there = _enter(name, here) if name else os.open("..", _FLAGS, dir_fd=here)
                os.close(here)
                here = there
                if name:
                    way.append(name)
                    continue
                with contextlib.suppress(FileNotFoundError):
                    os.rmdir(way.pop(), dir_fd=here)
        finally:
            os.close(here)
        os.rmdir(folder)


def _enter(name: str, parent: int | None = None) -> int:
    with contextlib.suppress(PermissionError):  # another user's, who may allow us in
        os.chmod(name, 0o700, dir_fd=parent)
    return os.open(name, _FLAGS, dir_fd=parent)


def _first_folder(descriptor: int) -> str:
    """Returns the name of a folder in a folder, "" where there is none; removes files before it."""
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                return entry.name
            with contextlib.suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=descriptor)
    return ""
