"""Sets the owner of template files, and modes and times that are equal on every machine."""

from datetime import UTC, datetime
from pathlib import Path

from coding_gym.sandbox.inside.fixed import DATE_S
from coding_gym.sandbox.layer_union import set_metadata, united

DEFAULT_DATE = datetime.fromtimestamp(DATE_S, UTC)  # of trees and layers without a date


def stamp(folder: Path, date: datetime, owner: tuple[int, int]) -> None:
    """Sets owner, times, and modes (0755 or 0644) of a folder and all its content."""
    times_ns = (int(date.timestamp()) * 10**9,) * 2
    set_metadata(folder, owner, 0o755, times_ns)
    for entry in united((folder,)).values():
        is_executable = entry.stat(follow_symlinks=False).st_mode & 0o100
        mode = 0o755 if is_executable or entry.is_dir(follow_symlinks=False) else 0o644
        set_metadata(Path(entry.path), owner, mode, times_ns)
