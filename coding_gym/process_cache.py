"""Results that all envs and threads of a process share."""

import os
import pickle
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_named: "dict[str, ProcessCache[Any]]" = {}


def save_results(path: Path) -> None:
    """Writes the results of all named caches to a file, for other processes of this version.

    Args:
        path: The file; it is there as a whole or not at all.
    """
    found = {name: cache.results() for name, cache in _named.items()}
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(pickle.dumps(found))
    partial.rename(path)


def load_results(path: Path) -> None:
    """Adds the results that `save_results` wrote.

    Args:
        path: The file. Load only what you wrote yourself, with the same version of this package:
            the format is pickle's, which runs code, and the results are not checked.
    """
    for name, results in pickle.loads(path.read_bytes()).items():  # noqa: S301 - the user's own
        for key, result in results.items():
            _named[name].get(key, [result].pop)


class ProcessCache(Generic[T]):
    """Results by key, each computed once; those not asked for longest are dropped.

    Threads that ask for the same key at the same time wait for the first of them.

    Args:
        max_results: How many results are kept.
        name: For `save_results`; results of a cache without a name are not saved.
    """

    def __init__(self, max_results: int = 256, name: str = "") -> None:
        self._max_results = max_results
        if name:
            _named[name] = self
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        self._lock = Lock()
        os.register_at_fork(after_in_child=self.after_fork)

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Returns the result of a key; where ``compute`` raises, the next call tries again."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_results:
                self._entries.popitem(last=False)
        with entry.lock:
            if not entry.results:
                entry.results.append(compute())
            return entry.results[0]

    def results(self) -> dict[Hashable, T]:
        """Returns all results by key."""
        with self._lock:
            return {key: entry.results[0] for key, entry in self._entries.items() if entry.results}

    def after_fork(self) -> None:
        """Replaces the locks in a child process: the threads that held them are in the parent."""
        self._lock = Lock()
        for entry in self._entries.values():
            entry.lock = Lock()


class _Entry(Generic[T]):
    def __init__(self) -> None:
        self.lock = Lock()
        self.results: list[T] = []  # at most one
