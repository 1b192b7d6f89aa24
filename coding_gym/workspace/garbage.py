"""Removes from a cache folder what nobody needs: old things, too much of it, and leftovers."""

import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from filelock import Timeout

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.cache_uses import CacheUses, cache_uses
from coding_gym.sandbox.folder_cache import PARTIAL, USED, key_lock, remove_leftovers
from coding_gym.sandbox.removal import remove_folder
from coding_gym.workspace.inventory import KINDS, CacheEntry, list_cache

# Written to by whoever builds the environment of the same key.
_OF_ENVIRONMENTS = ("downloads", "logs")


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbageReport:
    """What a collection did.

    Attributes:
        removed: What was removed, or would have been.
        spared: What was to go too, but is in use or being built.
        num_leftovers: Unfinished folders of killed builds that were removed.
        num_bytes_kept: What the entries that are still there take on the disk.
    """

    removed: tuple[CacheEntry, ...]
    spared: tuple[CacheEntry, ...]
    num_leftovers: int
    num_bytes_kept: int

    @property
    def num_bytes_removed(self) -> int:
        """What the removed entries took on the disk."""
        return sum(entry.num_bytes for entry in self.removed)


def collect_garbage(
    folder: Path,
    *,
    unused_for_s: float | None = None,
    max_bytes: int | None = None,
    kinds: Sequence[str] = (),
    dry_run: bool = False,
) -> GarbageReport:
    """Removes what was not used for long and, of the rest, what was used least recently.

    What a living process uses stays, and so does what is being built. What goes is built again by
    whoever wants it. Leftovers of killed builds go in any case.

    Args:
        folder: The cache folder.
        unused_for_s: Entries that were last used so many seconds ago, or earlier, go; None for no
            such bound.
        max_bytes: Entries go until the rest takes no more than this; None for no such bound.
        kinds: Only these kinds of `KINDS`; all where there are none.
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
    uses = cache_uses(folder)
    leftovers = 0 if dry_run else _remove_leftovers(folder, kinds)
    removed: list[CacheEntry] = []
    spared: list[CacheEntry] = []
    for entry in _doomed(entries, unused_for_s, max_bytes):
        gone = not entry.in_use if dry_run else _remove(folder, entry, uses)
        (removed if gone else spared).append(entry)
    kept = sum(entry.num_bytes for entry in entries) - sum(e.num_bytes for e in removed)
    return GarbageReport(
        removed=tuple(removed), spared=tuple(spared), num_leftovers=leftovers, num_bytes_kept=kept
    )


def _doomed(
    entries: Sequence[CacheEntry], unused_for_s: float | None, max_bytes: int | None
) -> list[CacheEntry]:
    """Returns which of the entries, the least recently used of which is first, are to go."""
    now = datetime.now(UTC)
    left = sum(entry.num_bytes for entry in entries)
    found = []
    for entry in entries:
        age = now - entry.used_at
        is_old = unused_for_s is not None and age >= timedelta(seconds=min(unused_for_s, 1e11))
        is_too_much = max_bytes is not None and left > max_bytes
        if is_old or is_too_much:
            found.append(entry)
            left -= 0 if entry.in_use else entry.num_bytes
    return found


def _remove(folder: Path, entry: CacheEntry, uses: CacheUses) -> bool:
    """Removes an entry; returns False where it is in use."""
    locks = folder / ("environments" if entry.kind in _OF_ENVIRONMENTS else entry.kind)
    aside = entry.path.with_name(f"{entry.path.name}.{secrets.token_hex(4)}{PARTIAL}")
    locks.mkdir(exist_ok=True)
    try:
        with key_lock(locks, entry.key).acquire(timeout=0):
            if entry.path.is_file():
                entry.path.unlink(missing_ok=True)
                return True
            # At once, so that whoever starts to use it later finds nothing, and builds.
            with uses.closed() as in_use:
                if entry.name in in_use:
                    return False
                with suppress(FileNotFoundError):
                    entry.path.rename(aside)
            entry.path.with_name(f"{entry.path.name}{USED}").unlink(missing_ok=True)
            remove_folder(aside)
    except Timeout:
        return False
    return True


def _remove_leftovers(folder: Path, kinds: Iterable[str]) -> int:
    places = [folder / kind for kind in kinds or KINDS]
    return sum(remove_leftovers(place) for place in places if place.is_dir())
