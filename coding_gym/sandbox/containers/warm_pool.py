"""Containers started ahead of time, for specs that are opened again and again."""

import atexit
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from coding_gym.sandbox.containers.container_sandbox import end_container
from coding_gym.sandbox.containers.loop_protocol import Transport

_Waiting = tuple[object, "Future[Transport]"]

# A spec that comes again within so many opens is worth a container ahead of time.
_REMEMBERED = 8
_LOOK_S = 0.001
_pools: dict[tuple[int, str, int], "WarmPool"] = {}


class WarmPool:
    """Keeps some started containers of the specs that are in use.

    A spec is in use when it was opened twice within the last few opens: the episodes of a group,
    or the sandbox of a grader. Containers of others are closed, and at exit all that wait.

    Args:
        size: How many containers may wait.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._recent: deque[object] = deque(maxlen=_REMEMBERED)
        self._waiting: list[_Waiting] = []
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="coding_gym-warm-pool")

    def open(self, key: object, start: Callable[[], Transport]) -> Transport:
        """Returns a container, started now or before.

        Args:
            key: Equal for containers that can stand for each other.
            start: Starts one.
        """
        with self._lock:
            self._recent.append(key)
            stale = [pair for pair in self._waiting if pair[0] not in self._recent]
            ready = [pair for pair in self._waiting if pair[0] == key and pair[1].done()]
            taken = [*stale, *ready[:1]]
            self._waiting = [pair for pair in self._waiting if pair not in taken]
        _close_later(stale)
        container = None
        for _, future in ready[:1]:
            # Where starting failed, starting here fails too, and says so.
            if future.exception() is None and _is_alive(future.result()):
                container = future.result()
            else:
                _close_later(ready[:1])
        container = container or start()
        self._refill(key, start)
        return container

    def _refill(self, key: object, start: Callable[[], Transport]) -> None:
        with self._lock:
            missing = self._size - len(self._waiting) if self._recent.count(key) > 1 else 0
            with contextlib.suppress(RuntimeError):  # the interpreter is about to exit
                self._waiting += [(key, self._starter.submit(start)) for _ in range(missing)]

    def close(self) -> None:
        """Closes what waits."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
            self._recent.clear()
        self._starter.shutdown(cancel_futures=True)
        _close_later(waiting)


def pool(url: str, size: int) -> WarmPool:
    """Returns this process's pool for a daemon, of a size."""
    if not _pools:
        atexit.register(close_pools)
    return _pools.setdefault((os.getpid(), url, size), WarmPool(size))


def close_pools() -> None:
    """Closes all pools of this process; those of the process that it was forked from stay."""
    for key in [key for key in _pools if key[0] == os.getpid()]:
        _pools.pop(key).close()


def _is_alive(transport: Transport) -> bool:
    """Whether a container waits for its first command."""
    try:
        transport.receive(_LOOK_S)
    except OSError as error:
        return isinstance(error, TimeoutError)
    return False


def _close_later(waiting: list[_Waiting]) -> None:
    """Closes containers, each as soon as it has started."""

    def close(future: "Future[Transport]") -> None:
        if not future.cancelled() and future.exception() is None:
            end_container(future.result())

    for _, future in waiting:
        future.add_done_callback(close)
