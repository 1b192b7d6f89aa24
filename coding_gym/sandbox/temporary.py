"""Folders that belong to a process, and the removal of those whose process is gone.

The name of such a folder holds its owner's `identity`. Folders of an earlier boot, or of another
container, are never taken for leftovers: nothing here can tell whether their owner is alive.
"""

import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from coding_gym.sandbox.processes import identity, is_gone
from coding_gym.sandbox.removal import remove_folder


def make_folder(kind: str) -> Path:
    """Returns a new temporary folder; removes those of this kind whose processes are gone.

    Args:
        kind: A word that says its purpose.

    Raises:
        OSError: It cannot be made.
    """
    sweep_once(Path(tempfile.gettempdir()), f"coding_gym-{kind}-*", os.getpid())
    return Path(tempfile.mkdtemp(prefix=f"coding_gym-{kind}-{identity()}-")).resolve()


@cache
def sweep_once(folder: Path, pattern: str, _pid: int) -> None:
    """Calls `sweep` the first time that a process asks for it."""
    sweep(folder, pattern)


def sweep(folder: Path, pattern: str, remove: Callable[[Path], None] = remove_folder) -> None:
    """Removes this user's folders whose names are of processes that are gone.

    Args:
        folder: Their parent; it need not exist.
        pattern: A glob that matches their names.
        remove: Removes one of them.
    """
    for path in folder.glob(pattern):
        try:
            is_ours = path.lstat().st_uid == os.geteuid()
        except FileNotFoundError:  # another process swept it
            continue
        if is_ours and is_gone(path.name):
            remove(path)
