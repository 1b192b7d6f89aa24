"""A memory cache in front of a file store."""

from __future__ import annotations

from typing import Any

from hoard.entry import Entry
from hoard.filestore import FileStore
from hoard.memory import MemoryCache

_MISSING = object()


class TieredCache:
    """Reads from memory if it can and from the store if it must; writes to both.

    Args:
        memory: the tier that is asked first.
        store: the tier that lasts.
    """

    def __init__(self, memory: MemoryCache, store: FileStore) -> None:
        self.memory = memory
        self.store = store

    def __contains__(self, key: str) -> bool:
        return key in self.memory or self.store.entry(key) is not None

    def get(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, or ``default`` if neither tier holds one."""
        value = self.memory.get(key, _MISSING)
        if value is not _MISSING:
            return value
        entry = self.store.entry(key)
        if entry is None:
            return default
        self._promote(key, entry)
        return entry.value

    def set(self, key: str, value: Any, ttl: float | None = None) -> None:
        """Stores ``value`` in both tiers, for ``ttl`` seconds or the time to live of each."""
        self.store.set(key, value, ttl)
        self.memory.set(key, value, ttl)

    def delete(self, key: str) -> bool:
        """Forgets ``key`` in both tiers and says whether there was something to forget."""
        was_in_memory = self.memory.delete(key)
        return self.store.delete(key) or was_in_memory

    def warm(self) -> int:
        """Copies what the store holds into memory and gives the number of entries.

        Stops when memory is full.
        """
        count = 0
        for key, entry in self.store.entries():
            if count == self.memory.max_entries:
                break
            self._promote(key, entry)
            count += 1
        return count

    def clear(self) -> None:
        """Forgets everything in both tiers."""
        self.store.clear()
        self.memory.clear()

    def _promote(self, key: str, entry: Entry) -> None:
        """Copies an entry of the store into memory, whose clock is another one."""
        lifetimes = (entry.time_left(self.store.clock()), self.memory.ttl)
        shortest = min((ttl for ttl in lifetimes if ttl is not None), default=None)
        self.memory.set(key, entry.value, shortest)
