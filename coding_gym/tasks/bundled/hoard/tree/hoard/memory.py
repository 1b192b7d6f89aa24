"""A cache in memory, bounded by size and time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from hoard.entry import Clock, Entry, check_ttl


@dataclass(slots=True)
class Stats:
    """How often a cache was asked, and what became of its entries."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0


class MemoryCache:
    """At most ``max_entries`` values, each for at most its time to live. Safe to share by threads.

    Args:
        max_entries: beyond this, expired entries go, then the least recently used one.
        ttl: seconds that an entry lives if :meth:`set` does not say otherwise; None for ever.
        clock: gives the current time in seconds.

    Raises:
        ValueError: if ``max_entries`` or ``ttl`` is not positive.
    """

    def __init__(
        self, max_entries: int = 128, ttl: float | None = None, clock: Clock = time.monotonic
    ) -> None:
        if max_entries < 1:
            raise ValueError(f"max_entries must be at least 1, got {max_entries}")
        self.max_entries = max_entries
        self.ttl = check_ttl(ttl)
        self.clock = clock
        self.stats = Stats()
        self._entries: OrderedDict[Hashable, Entry] = OrderedDict()
        self._lock = threading.RLock()

    def __len__(self) -> int:
        with self._lock:
            self.purge()
            return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            entry = self._entries.get(key)
            return entry is not None and not entry.is_expired(self.clock())

    def get(self, key: Hashable, default: Any = None) -> Any:
        """The value of ``key``, or ``default`` if there is none or it has expired."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.is_expired(self.clock()):
                self._entries.pop(key, None)
                self.stats.misses += 1
                return default
            self._entries.move_to_end(key)
            self.stats.hits += 1
            return entry.value

    def set(self, key: Hashable, value: Any, ttl: float | None = None) -> None:
        """Stores ``value``, for ``ttl`` seconds or the cache's own time to live."""
        lifetime = self.ttl if ttl is None else ttl
        self.put(key, Entry.lasting(value, lifetime, self.clock()))

    def put(self, key: Hashable, entry: Entry) -> None:
        """Stores an entry as it is."""
        with self._lock:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            if len(self._entries) > self.max_entries:
                self.purge()
            while len(self._entries) > self.max_entries:
                self._entries.popitem(last=False)
                self.stats.evictions += 1

    def delete(self, key: Hashable) -> bool:
        """Forgets ``key`` and says whether there was something to forget."""
        with self._lock:
            entry = self._entries.pop(key, None)
            return entry is not None and not entry.is_expired(self.clock())

    def purge(self) -> int:
        """Drops expired entries and gives their number."""
        with self._lock:
            now = self.clock()
            expired = [key for key, entry in self._entries.items() if entry.is_expired(now)]
            for key in expired:
                del self._entries[key]
            return len(expired)

    def clear(self) -> None:
        """Forgets everything but the statistics."""
        with self._lock:
            self._entries.clear()
