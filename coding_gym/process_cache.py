"""Results that all envs and threads of a process share."""

import os
import pickle
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from coding_gym.errors import InvalidArgumentError

T = TypeVar("T")

_named: "dict[str, ProcessCache[Any]]" = {}


def save_results(path: Path, version: str) -> None:
    """Writes the results of all named caches to a file, for other processes.

    Args:
        path: The file; it is there as a whole or not at all.
        version: Names the code that computed them.
    """
    found = {name: cache.results() for name, cache in _named.items()}
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(pickle.dumps((version, found)))
    unfinished.rename(path)


def load_results(path: Path, version: str) -> None:
    """Adds the results that `save_results` wrote.

    Args:
        path: The file. Load only what you wrote yourself: the format is pickle's, which runs code.
        version: Names the code that is running.

    Raises:
        InvalidArgumentError: Another version wrote the file.
    """
    found_version, found = pickle.loads(path.read_bytes())  # noqa: S301 - the user's own
    if found_version != version or not found.keys() <= _named.keys():
        raise InvalidArgumentError(
            f"{path} was written by version {found_version}, and this is {version}; delete it"
        )
    for name, results in found.items():
        _named[name].add(results)


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

    def add(self, results: Mapping[Hashable, T]) -> None:
        """Adds results that were computed elsewhere; those that are there already stay."""
        for key, result in results.items():
            self.get(key, partial(_identity, result))

    def after_fork(self) -> None:
        """Replaces the locks in a child process: the threads that held them are in the parent."""
        self._lock = Lock()
        for entry in self._entries.values():
            entry.lock = Lock()


def _identity(result: T) -> T:
    return result


class _Entry(Generic[T]):
    def __init__(self) -> None:
        self.lock = Lock()
        self.results: list[T] = []  # at most one
