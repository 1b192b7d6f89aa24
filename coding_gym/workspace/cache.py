"""Lists the entries of a cache folder by their last use, and removes old entries."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import Timeout

from coding_gym.sandbox.folder_cache import (
    LOCK,
    PARTIAL,
    USED,
    FolderCache,
    key_lock,
    remove_leftovers,
)

# Folders of the cache; docs/environments.md describes them. Entries of the last two are files.
_KINDS = (
    *("templates", "environments", "pytest", "layers", "image-trees", "image-pythons"),
    *("harnesses", "mirrors", "logs", "plans"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """An entry of the cache.

    Attributes:
        path: The folder or file of the entry.
        used_at: The time of the last recorded use, else of the last change.
    """

    path: Path
    used_at: datetime

    @property
    def name(self) -> str:
        """The path of the entry in the cache, such as ``templates/0123abcd``."""
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def num_days_unused(self) -> int:
        """The number of whole days since the last use."""
        return max((datetime.now(UTC) - self.used_at).days, 0)


def list_cache(folder: Path, *, older_than_days: int = 0) -> tuple[CacheEntry, ...]:
    """Returns the entries of a cache folder, the least recently used first.

    Args:
        folder: The cache folder, which need not exist.
        older_than_days: Minimum number of days since the last use of an entry.

    Raises:
        OSError: The folder cannot be read.
    """
    entries = [entry for kind in _KINDS for entry in _entries(folder, kind)]
    old = [entry for entry in entries if entry.num_days_unused >= older_than_days]
    return tuple(sorted(old, key=lambda entry: (entry.used_at, entry.name)))


def clear_cache(folder: Path, *, older_than_days: int = 0) -> tuple[CacheEntry, ...]:
    """Removes entries that were not used for some days, and folders of killed builds.

    Entries in use by a process are removed too, but not entries that are being built. A removed
    entry is built again at its next use.

    Args:
        folder: As for `list_cache`.
        older_than_days: As for `list_cache`.

    Returns:
        The removed entries.

    Raises:
        OSError: The folder cannot be read or written to.
    """
    entries = list_cache(folder, older_than_days=older_than_days)
    for kind in _KINDS:
        if (folder / kind).is_dir():
            remove_leftovers(folder / kind)
    return tuple(entry for entry in entries if _remove(entry))


def _remove(entry: CacheEntry) -> bool:
    """Removes an entry; returns False if the entry is being built."""
    folder = entry.path.parent
    try:
        if entry.path.is_dir():
            FolderCache(folder).remove(entry.path.name, timeout_s=0)
            return True
        builds = folder.with_name("environments") if folder.name == "logs" else folder
        with key_lock(builds, entry.path.stem).acquire(timeout=0):
            entry.path.unlink(missing_ok=True)
    except Timeout:
        return False
    return True


def _entries(root: Path, kind: str) -> Iterator[CacheEntry]:
    for path in (root / kind).iterdir() if (root / kind).is_dir() else ():
        if path.name.endswith((PARTIAL, LOCK, USED)):
            continue
        marker = path.with_name(f"{path.name}{USED}")
        with suppress(OSError):  # another process has removed the entry
            used_s = marker.stat().st_mtime if marker.exists() else path.stat().st_ctime
            yield CacheEntry(path=path, used_at=datetime.fromtimestamp(used_s, UTC))
