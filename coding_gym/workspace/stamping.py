"""Owner, modes and times of template files, which do not depend on this machine."""

import os
from datetime import datetime
from pathlib import Path

from coding_gym.sandbox.layer_union import set_metadata


def stamp(folder: Path, date: datetime, owner: tuple[int, int]) -> None:
    """Sets owner, times and plain modes (0644 or 0755) of a folder and everything in it."""
    times_ns = (int(date.timestamp()) * 10**9,) * 2
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(parent, name)
            executable = path.lstat().st_mode & 0o100
            set_metadata(path, owner, 0o755 if executable else 0o644, times_ns)
        for name in folders:
            if (path := Path(parent, name)).is_symlink():
                set_metadata(path, owner, 0o777, times_ns)
        set_metadata(Path(parent), owner, 0o755, times_ns)
