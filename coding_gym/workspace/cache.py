"""A cache folder: its entries, their sizes and last uses, and the removal of unused ones."""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from filelock import Timeout

from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.folder_cache import PARTIAL, USED, CacheUses, key_lock, remove_leftovers
from coding_gym.sandbox.ownership import remove_folder
from coding_gym.workspace.environment import BUILD_LOG

# Folders of the cache; docs/environments.md says what each holds.
KINDS = (
    *("templates", "environments", "pytest", "layers", "image-trees", "image-pythons"),
    *("mirrors", "downloads", "logs", "views", "plans"),
)
_FILES = ("logs", "plans")
# Written to by the build of the environment of the same key.
_OF_ENVIRONMENTS = ("downloads", "logs")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """One thing in the cache.

    Attributes:
        kind: One of `KINDS`.
        key: Its name among those of its kind.
        path: Its folder or file.
        num_bytes: Its size on the disk.
        built_at: When it was finished.
        used_at: When a process last began to use it.
        users: The first that wanted it: ids of tasks, names of images.
        in_use: Whether a living process uses it.
    """

    kind: str
    key: str
    path: Path
    num_bytes: int
    built_at: datetime
    used_at: datetime
    users: tuple[str, ...]
    in_use: bool

    @property
    def name(self) -> str:
        """Its path in the cache."""
        return f"{self.kind}/{self.path.name}"

    def to_json(self) -> dict[str, Any]:
        """Returns the entry as a JSON object."""
        times = {"built_at": self.built_at.isoformat(), "used_at": self.used_at.isoformat()}
        return asdict(self) | times | {"path": str(self.path), "users": list(self.users)}


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbageReport:
    """The result of a collection.

    Attributes:
        removed: The entries that were removed, or would have been.
        spared: Those that were to go too, but are in use or being built.
        num_leftovers: Unfinished folders of killed builds that were removed.
        num_bytes_kept: The size on the disk of the entries that are still there.
    """

    removed: tuple[CacheEntry, ...]
    spared: tuple[CacheEntry, ...]
    num_leftovers: int
    num_bytes_kept: int

    @property
    def num_bytes_removed(self) -> int:
        """The size on the disk of the removed entries."""
        return sum(entry.num_bytes for entry in self.removed)


def list_cache(folder: Path, kinds: Sequence[str] = ()) -> tuple[CacheEntry, ...]:
    """Returns the entries of a cache folder, the least recently used first.

    Args:
        folder: The cache folder, which need not exist.
        kinds: Only these kinds; all where there are none.

    Raises:
        UnknownNameError: There is no such kind.
        InvalidArgumentError: ``folder`` is no folder.
        OSError: The folder cannot be read or written to.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise unknown_name("cache entry", kind, KINDS)
    if not folder.exists():
        return ()
    if not folder.is_dir():
        raise InvalidArgumentError(f"the cache must be a folder, got {str(folder)!r}")
    found = [entry for kind in kinds or KINDS for entry in _entries(folder, kind)]
    return tuple(sorted(found, key=lambda entry: (entry.used_at, entry.name)))


def find_log(folder: Path, key: str) -> Path:
    """Returns the log of an environment's build.

    Args:
        folder: The cache folder.
        key: The environment's key, or enough of its beginning.

    Raises:
        InvalidArgumentError: None, or several, have such a key.
    """
    logs = [*folder.glob(f"environments/*/{BUILD_LOG}"), *folder.glob("logs/*.log")]
    named = {(p.parent.name if p.name == BUILD_LOG else p.stem): p for p in logs}
    found = [path for name, path in named.items() if name.startswith(key)]
    if len(found) != 1:
        keys = ", ".join(sorted(named)) or "none"
        raise InvalidArgumentError(
            f"{len(found)} environments of {folder} have a key that starts with {key!r}; "
            f"there are {keys}"
        )
    return found[0]


def collect_garbage(
    folder: Path,
    *,
    unused_for_s: float | None = None,
    max_bytes: int | None = None,
    kinds: Sequence[str] = (),
    dry_run: bool = False,
) -> GarbageReport:
    """Removes entries that were not used for long and, of the rest, the least recently used.

    Entries that a living process uses or builds stay. Removed ones are built again when they are
    wanted. Leftovers of killed builds go in any case.

    Args:
        folder: The cache folder.
        unused_for_s: Entries that were last used so many seconds ago, or earlier, go; None for no
            such bound.
        max_bytes: Entries go until the rest takes no more than this; None for no such bound.
        kinds: Only these of `KINDS`; all where there are none.
        dry_run: Only say what would go.

    Raises:
        InvalidArgumentError: An argument is out of range.
        UnknownNameError: There is no such kind.
        OSError: The folder cannot be read or written to.
    """
    for name, value in (("unused_for_s", unused_for_s), ("max_bytes", max_bytes)):
        if value is not None and not value >= 0:
            raise InvalidArgumentError(f"{name} must be at least 0, got {value!r}")
    entries = list_cache(folder, kinds)
    kind_folders = [] if dry_run else [folder / kind for kind in kinds or KINDS]
    if not dry_run:
        remove_folder(folder / "uses")  # of versions that did not lock what they used
    leftovers = sum(remove_leftovers(place) for place in kind_folders if place.is_dir())
    removed: list[CacheEntry] = []
    spared: list[CacheEntry] = []
    for entry in _doomed(entries, unused_for_s, max_bytes):
        gone = not entry.in_use if dry_run else _remove(folder, entry)
        (removed if gone else spared).append(entry)
    kept = sum(entry.num_bytes for entry in entries) - sum(e.num_bytes for e in removed)
    return GarbageReport(
        removed=tuple(removed), spared=tuple(spared), num_leftovers=leftovers, num_bytes_kept=kept
    )


def _doomed(
    entries: Sequence[CacheEntry], unused_for_s: float | None, max_bytes: int | None
) -> Iterator[CacheEntry]:
    """Yields the entries to remove; the least recently used ones come first in ``entries``."""
    now = datetime.now(UTC)
    left = sum(entry.num_bytes for entry in entries)
    for entry in entries:
        age = now - entry.used_at
        is_old = unused_for_s is not None and age >= timedelta(seconds=min(unused_for_s, 1e11))
        if is_old or (max_bytes is not None and left > max_bytes):
            yield entry
            left -= 0 if entry.in_use else entry.num_bytes


def _remove(folder: Path, entry: CacheEntry) -> bool:
    """Removes an entry; returns False where it is in use or being built."""
    locks = folder / ("environments" if entry.kind in _OF_ENVIRONMENTS else entry.kind)
    aside = entry.path.with_name(f"{entry.path.name}.{secrets.token_hex(4)}{PARTIAL}")
    locks.mkdir(exist_ok=True)
    try:
        with key_lock(locks, entry.key).acquire(timeout=0):
            if entry.path.is_file():
                entry.path.unlink(missing_ok=True)
                return True
            # At once, so that a later user finds nothing, and builds.
            with CacheUses(folder).unused(entry.name) as is_unused:
                if not is_unused:
                    return False
                with suppress(FileNotFoundError):
                    entry.path.rename(aside)
            entry.path.with_name(f"{entry.path.name}{USED}").unlink(missing_ok=True)
            remove_folder(aside)
    except Timeout:
        return False
    return True


def _entries(root: Path, kind: str) -> Iterator[CacheEntry]:
    uses, is_file = CacheUses(root), kind in _FILES
    for path in (root / kind).iterdir() if (root / kind).is_dir() else ():
        if path.name.endswith((PARTIAL, ".lock")) or path.is_dir() == is_file:
            continue
        try:
            used = path.with_name(f"{path.name}{USED}")
            built_s = path.stat().st_mtime if is_file else path.stat().st_ctime
            used_s = used.stat().st_mtime if used.exists() else built_s
            users = used.read_text(encoding="utf-8").splitlines() if used.exists() else []
        except OSError:  # it was just removed
            continue
        yield CacheEntry(
            kind=kind,
            key=path.stem if is_file else path.name,
            path=path,
            num_bytes=_size(path),
            built_at=datetime.fromtimestamp(built_s, UTC),
            used_at=datetime.fromtimestamp(used_s, UTC),
            users=tuple(users),
            in_use=uses.is_used(f"{kind}/{path.name}"),
        )


def _size(path: Path) -> int:
    """Returns the bytes of disk blocks below a path; a file with several names counts once."""
    blocks: dict[int, int] = {}
    for place in (path, *(Path(p, n) for p, fs, ns in os.walk(path) for n in (*fs, *ns))):
        with suppress(OSError):  # it was just removed
            facts = place.lstat()
            blocks[facts.st_ino] = facts.st_blocks
    return sum(blocks.values()) * 512
