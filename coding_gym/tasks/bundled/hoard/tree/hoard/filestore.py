"""A store with one JSON file per key."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hoard.entry import Clock, Entry, check_ttl

_SUFFIX = ".entry.json"


class FileStore:
    """Values on disk, each for at most its time to live.

    Args:
        folder: where the files go; it is made if need be, and ``~`` is understood.
        ttl: seconds that an entry lives if :meth:`set` does not say otherwise; None for ever.
        clock: gives the current time in seconds. Deadlines are written to disk, so it must go on
            over restarts and agree between processes.

    Raises:
        ValueError: if ``ttl`` is not positive.
    """

    def __init__(
        self, folder: str | os.PathLike[str], ttl: float | None = None, clock: Clock = time.time
    ) -> None:
        self.folder = Path(folder).expanduser()
        self.ttl = check_ttl(ttl)
        self.clock = clock
        self.folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, or ``default`` if there is none or it has expired."""
        entry = self.entry(key)
        return default if entry is None else entry.value

    def entry(self, key: str) -> Entry | None:
        """The entry of ``key``, or None if there is none or it has expired."""
        path = self._path(key)
        found = self._read(path)
        if found is None:
            return None
        _, entry = found
        if entry.is_expired(self.clock()):
            path.unlink(missing_ok=True)
            return None
        return entry

    def set(self, key: str, value: Any, ttl: float | None = None) -> None:
        """Stores ``value``, for ``ttl`` seconds or the store's own time to live.

        Raises:
            TypeError: if JSON cannot hold it.
        """
        entry = Entry.lasting(value, self.ttl if ttl is None else ttl, self.clock())
        text = json.dumps({"key": key, "value": entry.value, "deadline": entry.deadline})
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=self.folder, suffix=".tmp", delete=False
        ) as stream:
            stream.write(text)
        Path(stream.name).replace(self._path(key))

    def delete(self, key: str) -> bool:
        """Forgets ``key`` and says whether there was something to forget."""
        was_there = self.entry(key) is not None
        self._path(key).unlink(missing_ok=True)
        return was_there

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """Every key with its entry, in no particular order; expired ones are left out."""
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            found = self._read(path)
            if found is not None and not found[1].is_expired(self.clock()):
                yield found

    def purge(self) -> int:
        """Removes expired and damaged files and gives their number."""
        count = 0
        for path in self.folder.glob(f"*{_SUFFIX}"):
            found = self._read(path)
            if found is None or found[1].is_expired(self.clock()):
                path.unlink(missing_ok=True)
                count += 1
        return count

    def clear(self) -> None:
        """Forgets everything."""
        for path in self.folder.glob(f"*{_SUFFIX}"):
            path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        digest = hashlib.sha256(key.encode("utf-8")).hexdigest()
        return self.folder / f"{digest[:40]}{_SUFFIX}"

    def _read(self, path: Path) -> tuple[str, Entry] | None:
        """Key and entry in a file; a missing or damaged file holds none."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            record = json.loads(path.read_text(encoding="utf-8"))
            return record["key"], Entry(record["value"], record["deadline"])
        return None
