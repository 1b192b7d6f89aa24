"""The pool stops at any moment, also one that no lock allows."""

import threading
from concurrent.futures import Future, wait
from typing import Any

import pytest

from coding_gym.errors import EpisodeError
from coding_gym.vector import thread_pool
from coding_gym.vector.thread_pool import ThreadPool


def test_who_waits_for_a_job_that_a_stop_prevented_learns_it() -> None:
    pool, gate = ThreadPool(1), threading.Event()
    running, queued = pool.submit(gate.wait, 30), pool.submit(int)
    pool.stop()
    late = pool.submit(int)
    assert wait([queued, late], timeout=30).not_done == set()
    gate.set()
    pool.join()
    assert running.result() is True
    for refused in (queued, late):
        with pytest.raises(EpisodeError, match="closed; make another"):
            refused.result()


def test_garbage_that_is_collected_in_a_submit_may_stop_the_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool, real = ThreadPool(2), threading.Thread

    def collect_garbage(**kwargs: Any) -> threading.Thread:
        pool.stop()
        return real(**kwargs)

    futures: list[Future[int]] = []
    monkeypatch.setattr(thread_pool, "Thread", collect_garbage)
    submitting = real(target=lambda: futures.append(pool.submit(int)), daemon=True)
    submitting.start()
    submitting.join(timeout=30)
    assert not submitting.is_alive()
    with pytest.raises(EpisodeError):
        futures[0].result(timeout=30)
    pool.join()
