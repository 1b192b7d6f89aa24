"""Containers started ahead of time, for specs that are opened again and again."""

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Hashable

from coding_gym.errors import SandboxError
from coding_gym.sandbox.containers.container import Container
from coding_gym.sandbox.containers.locks import SharedLock

# A spec that comes again within so many is worth a container ahead of time.
_REMEMBERED = 8
_pools: dict[tuple[int, Hashable], "WarmPool"] = {}
_pools_lock = SharedLock()


class WarmPool:
    """Keeps some started containers of the specs that are in use.

    A spec is in use when it was opened twice within the last few opens: the episodes of a group,
    or the sandbox of a grader. Containers of others are closed. One thread refills the pool, and
    ends when it is full; what waits is closed at exit.

    Args:
        size: How many containers may wait.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._recent: deque[object] = deque(maxlen=_REMEMBERED)
        self._waiting: list[tuple[object, Container]] = []
        self._wanted: tuple[object, Callable[[], Container]] | None = None
        self._thread: threading.Thread | None = None

    def open(self, key: object, start: Callable[[], Container]) -> Container:
        """Returns a container, started now or before.

        Args:
            key: Equal for containers that can stand for each other.
            start: Starts one.
        """
        with self._lock:
            self._recent.append(key)
            found = self._take(key)
            stale = self._stale()
        for container in stale:
            container.close()
        while found is not None and not found.is_alive():
            found.close()
            with self._lock:
                found = self._take(key)
        container = found or start()
        self._refill(key, start)
        return container

    def close(self) -> None:
        """Closes what waits."""
        with self._lock:
            self._wanted = None
            self._recent.clear()
            thread = self._thread
        if thread is not None:
            thread.join()
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for _, container in waiting:
            container.close()

    def _take(self, key: object) -> Container | None:
        for index, (other, container) in enumerate(self._waiting):
            if other == key:
                del self._waiting[index]
                return container
        return None

    def _stale(self) -> list[Container]:
        stale = [pair for pair in self._waiting if pair[0] not in self._recent]
        self._waiting = [pair for pair in self._waiting if pair[0] in self._recent]
        return [container for _, container in stale]

    def _refill(self, key: object, start: Callable[[], Container]) -> None:
        with self._lock:
            if self._recent.count(key) < 2:
                return
            self._wanted = key, start
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="coding_gym-warm-pool")
                self._thread.start()

    def _work(self) -> None:
        while (wanted := self._next()) is not None:
            key, start = wanted
            try:
                container = start()
            except SandboxError:  # the next open meets it too, and says so
                with self._lock:
                    self._wanted = None
                continue
            with self._lock:
                self._waiting.append((key, container))

    def _next(self) -> tuple[object, Callable[[], Container]] | None:
        """Returns what to start now; None when that is nothing, and the thread is to end."""
        with self._lock:
            if self._wanted is None or len(self._waiting) >= self._size:
                self._thread = None
                return None
            return self._wanted


def pool(name: Hashable, size: int) -> WarmPool:
    """Returns this process's pool of a name."""
    with _pools_lock:
        if not _pools:
            atexit.register(close_pools)
        return _pools.setdefault((os.getpid(), name), WarmPool(size))


def close_pools() -> None:
    """Closes all pools of this process; those of the process that it was forked from stay."""
    with _pools_lock:
        mine = [_pools.pop(key) for key in list(_pools) if key[0] == os.getpid()]
    for one in mine:
        one.close()
