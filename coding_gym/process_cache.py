"""A cache of results, shared by all envs and threads of a process."""

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class ProcessCache(Generic[T]):
    """Results by key, each computed once; the least recently used results are removed.

    If several threads request the same key, the first computes the result and the others wait.

    Args:
        max_results: Maximum number of results.
    """

    def __init__(self, max_results: int = 256) -> None:
        self._max_results = max_results
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        self._lock = Lock()
        os.register_at_fork(after_in_child=self.after_fork)

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Returns the result of a key; computes a missing result, also after a failed attempt."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_results:
                self._entries.popitem(last=False)
        with entry.lock:
            if not entry.results:
                entry.results.append(compute())
            return entry.results[0]

    def after_fork(self) -> None:
        """Replaces the locks in a forked child, which lacks the threads that hold them."""
        self._lock = Lock()
        for entry in self._entries.values():
            entry.lock = Lock()


class _Entry(Generic[T]):
    def __init__(self) -> None:
        self.lock = Lock()
        self.results: list[T] = []  # empty, or the result
