"""Folders on disk that take a sandbox's changes where a tmpfs cannot.

Before Linux 6.6 a tmpfs holds no user extended attributes, and without them an overlay can neither
remove nor replace a folder of its lower layers. There the changes go to a folder of the user's
cache. Each is removed when its sandbox closes; all of a process when it ends, by its zygote when it
is killed, and what even that missed, by the next process that needs such a folder.
"""

import contextlib
import os
import tempfile
from pathlib import Path

import platformdirs

from coding_gym.sandbox.processes import identity
from coding_gym.sandbox.removal import remove_folder
from coding_gym.sandbox.temporary import sweep_once


def process_folder() -> Path:
    """Returns the folder for the sandboxes of this process, which need not exist yet."""
    return _base() / identity()


def make(owner: tuple[int, int]) -> Path:
    """Makes the folder of one sandbox, with what an overlay needs in it.

    Raises:
        OSError: The disk is full, or the cache cannot be written.
    """
    sweep_once(_base(), "*", os.getpid())
    for path in (_base(), process_folder()):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=process_folder()))
    for path in (folder, folder / "upper", folder / "work"):
        path.mkdir(mode=0o755, exist_ok=True)
        os.chown(path, *owner)
    return folder


def remove(folder: Path) -> None:
    """Removes the folder of one sandbox."""
    remove_folder(folder)


def remove_all() -> None:
    """Removes the folder of this process, whose sandboxes have all ended."""
    with contextlib.suppress(PermissionError):  # the process became somebody else meanwhile
        if process_folder().exists():
            remove_folder(process_folder())


def _base() -> Path:
    return platformdirs.user_cache_path("coding_gym") / "uppers"
