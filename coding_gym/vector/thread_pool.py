"""Threads that run jobs in the order in which they came."""

import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import RLock, Thread, current_thread
from typing import Any, ParamSpec, TypeVar

from coding_gym.errors import EpisodeError

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Job = tuple["Future[Any]", Callable[[], Any]]


class ThreadPool:
    """A fixed number of threads, started as jobs come.

    Jobs begin in the order of their `submit`, so a job may wait for an earlier one without fear of
    deadlock. The threads are daemons: unlike those of `concurrent.futures.ThreadPoolExecutor`, they
    do not keep an interpreter that wants to end waiting for a command that takes minutes.

    Args:
        num_threads: How many jobs run at once.
    """

    def __init__(self, num_threads: int) -> None:
        self._num_threads = num_threads
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._lock = RLock()  # garbage that is collected inside `submit` may `stop` the same pool
        self._is_stopped = False
        self._owner = os.getpid()

    @property
    def is_mine(self) -> bool:
        """Whether this is the process that made the pool; a fork has none of its threads."""
        return os.getpid() == self._owner

    def submit(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> "Future[_T]":
        """Returns the future of a call; it holds an `EpisodeError` where the pool was stopped."""
        future: Future[_T] = Future()
        with self._lock:
            self._jobs.put((future, partial(work, *args, **kwargs)))
            if len(self._threads) < self._num_threads and not self._is_stopped:
                name = f"coding_gym-vector-{len(self._threads)}"
                thread = Thread(target=_work, args=(self._jobs,), name=name, daemon=True)
                thread.start()
                self._threads.append(thread)
            if self._is_stopped:
                self._refuse_jobs()
        return future

    def stop(self) -> None:
        """Lets running jobs end and begins no more; idempotent, and waits for nothing."""
        if not self.is_mine:
            return
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
            self._refuse_jobs()

    def join(self) -> None:
        """Waits until every thread has ended; for use after `stop`."""
        for thread in self._threads:
            if thread is not current_thread():  # an env may close them all
                thread.join()

    def _refuse_jobs(self) -> None:
        with suppress(Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None and job[0].set_running_or_notify_cancel():
                    job[0].set_exception(EpisodeError("the vector env was closed; make another"))
        self._jobs.put(None)


def _work(jobs: "SimpleQueue[_Job | None]") -> None:
    while job := jobs.get():
        _run(*job)
        del job  # a thread that waits holds nothing
    jobs.put(None)  # for the next thread


def _run(future: "Future[_T]", work: Callable[[], _T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - the caller that waits for the result gets it
        future.set_exception(error)
        del future  # which the error's traceback would hold, and it the error
    else:
        future.set_result(result)
