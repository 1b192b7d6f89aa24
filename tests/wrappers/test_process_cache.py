import threading

import pytest

from coding_gym.errors import SandboxError
from coding_gym.wrappers.process_cache import ProcessCache


def test_threads_that_ask_together_compute_it_once() -> None:
    begun, may_end = threading.Event(), threading.Event()
    results, found = [], []

    def compute() -> object:
        begun.set()
        assert may_end.wait(30)
        results.append(object())
        return results[-1]

    cache = ProcessCache[object]()
    ask = lambda: found.append(cache.get("key", compute))  # noqa: E731 - a thread's target
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert begun.wait(30)
    may_end.set()
    for thread in threads:
        thread.join()
    assert len(results) == 1
    assert found == results * 8


def test_a_forked_child_does_not_wait_for_a_thread_of_its_parent() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def wait() -> int:
        begun.set()
        assert may_end.wait(30)
        return 1

    cache = ProcessCache[int]()
    thread = threading.Thread(target=cache.get, args=("key", wait))
    thread.start()
    assert begun.wait(30)
    cache.after_fork()
    assert cache.get("key", lambda: 2) == 2
    may_end.set()
    thread.join()


def test_other_keys_do_not_wait() -> None:
    cache = ProcessCache[int]()
    assert cache.get("outer", lambda: cache.get("inner", lambda: 1) + 1) == 2


def test_a_failure_is_not_remembered() -> None:
    def fail() -> int:
        raise SandboxError("it died")

    cache = ProcessCache[int]()
    with pytest.raises(SandboxError):
        cache.get("key", fail)
    assert cache.get("key", lambda: 1) == 1


def test_the_result_not_asked_for_longest_is_dropped() -> None:
    computed: list[int] = []
    cache = ProcessCache[None](max_results=2)
    for number in (1, 2, 1, 3, 1, 2):
        cache.get(number, lambda number=number: computed.append(number))
    assert computed == [1, 2, 3, 2]
