"""Caches with a size, a time to live, and a place on disk."""

from hoard.decorators import argument_key, cached, text_key
from hoard.entry import Entry, ManualClock
from hoard.filestore import FileStore
from hoard.memory import MemoryCache, Stats
from hoard.tiered import TieredCache

__all__ = [
    "Entry",
    "FileStore",
    "ManualClock",
    "MemoryCache",
    "Stats",
    "TieredCache",
    "argument_key",
    "cached",
    "text_key",
]
