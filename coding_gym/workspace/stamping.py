"""Owner, modes and times of template files, which show nothing of this machine."""

import os
from datetime import datetime
from pathlib import Path


def stamp(folder: Path, date: datetime, owner: tuple[int, int]) -> None:
    """Sets owner, times and plain modes (0644 or 0755) of everything in a folder, and of itself."""
    seconds = date.timestamp()
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(parent, name)
            executable = path.lstat().st_mode & 0o100
            set_metadata(path, owner, 0o755 if executable else 0o644, seconds)
        for name in folders:
            if (path := Path(parent, name)).is_symlink():
                set_metadata(path, owner, 0o777, seconds)
        set_metadata(Path(parent), owner, 0o755, seconds)


def set_metadata(path: Path, owner: tuple[int, int], mode: int, seconds: float) -> None:
    """Sets owner, mode (but of a symlink) and times, in seconds since 1970, of one file."""
    os.chown(path, *owner, follow_symlinks=False)
    if not path.is_symlink():
        path.chmod(mode)
    os.utime(path, (seconds, seconds), follow_symlinks=False)
