"""What lies in a cache folder: how large it is, who wanted it, and when it was last used."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.cache_uses import cache_uses
from coding_gym.sandbox.folder_cache import PARTIAL, USED
from coding_gym.workspace.environment import BUILD_LOG

# Each is a folder of the cache.
KINDS = {
    "templates": "trees of tasks",
    "environments": "what install commands made",
    "pytest": "pytest for an interpreter",
    "layers": "layers of images",
    "image-trees": "trees that were taken out of images",
    "image-pythons": "what is known of images",
    "mirrors": "clones of repositories",
    "downloads": "what environments that could not be built have downloaded",
    "logs": "logs of environments that could not be built",
    "views": "the viewer's indexes of runs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """One thing in the cache.

    Attributes:
        kind: A key of `KINDS`.
        key: Its name among those of its kind.
        path: Where it lies.
        num_bytes: What it takes on the disk.
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
        return {
            "kind": self.kind,
            "key": self.key,
            "path": str(self.path),
            "num_bytes": self.num_bytes,
            "built_at": self.built_at.isoformat(),
            "used_at": self.used_at.isoformat(),
            "users": list(self.users),
            "in_use": self.in_use,
        }


def list_cache(folder: Path, kinds: Sequence[str] = ()) -> tuple[CacheEntry, ...]:
    """Returns what lies in a cache folder, what was used least recently first.

    Args:
        folder: The cache folder, which need not exist.
        kinds: Only these kinds; all where there are none.

    Raises:
        UnknownNameError: There is no such kind.
        InvalidArgumentError: ``folder`` is no folder.
        OSError: The folder cannot be read.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise unknown_name("cache entry", kind, KINDS)
    if not folder.exists():
        return ()
    if not folder.is_dir():
        raise InvalidArgumentError(f"the cache must be a folder, got {str(folder)!r}")
    with cache_uses(folder).closed() as in_use:
        pass
    found = [entry for kind in kinds or KINDS for entry in _entries(folder / kind, kind, in_use)]
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


def _entries(folder: Path, kind: str, in_use: frozenset[str]) -> Iterator[CacheEntry]:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        is_file = kind == "logs"
        if path.name.endswith(PARTIAL) or path.is_dir() == is_file:
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
            in_use=f"{kind}/{path.name}" in in_use,
        )


def _size(path: Path) -> int:
    """Returns the bytes of disk blocks below a path; a file with several names counts once."""
    seen: set[int] = set()
    total = 0
    places = [path, *(Path(p, n) for p, fs, ns in os.walk(path) for n in (*fs, *ns))]
    for place in places:
        try:
            facts = place.lstat()
        except OSError:  # it was just removed
            continue
        if facts.st_ino not in seen:
            seen.add(facts.st_ino)
            total += facts.st_blocks * 512
    return total
