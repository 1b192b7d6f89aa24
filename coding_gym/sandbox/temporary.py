"""Temporary folders that end with their process, or else with the next that makes one."""

import os
import tempfile
from functools import cache
from pathlib import Path

from coding_gym.sandbox.processes import identity, is_gone
from coding_gym.sandbox.removal import remove_folder


def make_folder(kind: str) -> Path:
    """Returns a new folder; removes those of this kind whose processes are gone.

    Args:
        kind: A word that says what it is for.

    Raises:
        OSError: It cannot be made.
    """
    sweep(Path(tempfile.gettempdir()), f"coding_gym-{kind}-*", os.getpid())
    return Path(tempfile.mkdtemp(prefix=f"coding_gym-{kind}-{identity()}-")).resolve()


@cache
def sweep(folder: Path, pattern: str, _pid: int) -> None:
    """Removes this user's folders whose names are of processes that are gone; once per process.

    Args:
        folder: Where they lie; it need not exist.
        pattern: What their names look like; each holds the `identity` of its process.
    """
    for path in folder.glob(pattern):
        try:
            is_ours = path.lstat().st_uid == os.geteuid()
        except FileNotFoundError:  # another process swept it
            continue
        if is_ours and is_gone(path.name):
            remove_folder(path)
