"""Lists the entries of a cache folder by their last use, and removes old ones."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import Timeout

from coding_gym.sandbox.folder_cache import PARTIAL, USED, FolderCache, key_lock, remove_leftovers

# Folders of the cache; docs/environments.md describes their contents. Entries of the last two are
# files.
_KINDS = (
    *("templates", "environments", "pytest", "layers", "image-trees", "image-pythons"),
    *("harnesses", "mirrors", "logs", "plans"),
)
_FILES = ("logs", "plans")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """An entry of the cache.

    Attributes:
        path: Its folder or file.
        used_at: The last use by a process, or the time of writing.
    """

    path: Path
    used_at: datetime

    @property
    def name(self) -> str:
        """Its path in the cache."""
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def num_days_unused(self) -> int:
        """The number of whole days since its last use."""
        return max((datetime.now(UTC) - self.used_at).days, 0)


def list_cache(folder: Path, *, older_than_days: int = 0) -> tuple[CacheEntry, ...]:
    """Returns the entries of a cache folder, the least recently used first.

    Args:
        folder: The cache folder, which need not exist.
        older_than_days: Only entries that were not used for this number of days.

    Raises:
        OSError: The folder cannot be read.
    """
    entries = [entry for kind in _KINDS for entry in _entries(folder, kind)]
    old = [entry for entry in entries if entry.num_days_unused >= older_than_days]
    return tuple(sorted(old, key=lambda entry: (entry.used_at, entry.name)))


def clear_cache(folder: Path, *, older_than_days: int = 0) -> tuple[CacheEntry, ...]:
    """Removes entries that were not used for some days, and leftovers of killed builds.

    Entries that are being built are kept. A removed entry is built again at its next use. Entries
    in use by a process are removed too.

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
    """Removes an entry; returns False if it is being built."""
    folder = entry.path.parent
    try:
        if folder.name not in _FILES:
            FolderCache(folder).remove(entry.path.name, timeout_s=0)
            return True
        builds = folder.with_name("environments") if folder.name == "logs" else folder
        with key_lock(builds, entry.path.stem).acquire(timeout=0):
            entry.path.unlink(missing_ok=True)
    except Timeout:
        return False
    return True


def _entries(root: Path, kind: str) -> Iterator[CacheEntry]:
    is_file = kind in _FILES
    for path in (root / kind).iterdir() if (root / kind).is_dir() else ():
        if path.name.endswith((PARTIAL, ".lock")) or path.is_dir() == is_file:
            continue
        used = path.with_name(f"{path.name}{USED}")
        with suppress(OSError):  # another process just removed it
            used_s = used.stat().st_mtime if used.exists() else path.stat().st_ctime
            yield CacheEntry(path=path, used_at=datetime.fromtimestamp(used_s, UTC))
