"""Temporary folders that end with their process, or else with the next that makes one."""

import os
import tempfile
from functools import cache
from pathlib import Path

from coding_gym.sandbox.processes import start_time
from coding_gym.sandbox.removal import remove_folder


def make_folder(kind: str) -> Path:
    """Returns a new folder; removes those of this kind whose processes are gone.

    Args:
        kind: A word that says what it is for.

    Raises:
        OSError: It cannot be made.
    """
    _sweep(kind, os.getpid())
    name = f"{_prefix(kind)}{os.getpid()}-{start_time(os.getpid())}-"
    return Path(tempfile.mkdtemp(prefix=name)).resolve()


@cache
def _sweep(kind: str, _pid: int) -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_prefix(kind)}*-*-*"):
        pid, started, *_ = folder.name.removeprefix(_prefix(kind)).split("-")
        try:
            is_ours = folder.lstat().st_uid == os.geteuid()
        except FileNotFoundError:  # another process swept it
            continue
        if is_ours and pid.isdecimal() and start_time(int(pid)) != started:
            remove_folder(folder)


def _prefix(kind: str) -> str:
    return f"coding_gym-{kind}-"
