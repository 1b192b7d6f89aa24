"""Threads of one process can use the Python parser and a `ProcessCache` at the same time."""

import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from coding_gym import syntax
from coding_gym.process_cache import ProcessCache

SOURCE = "\n".join(
    f"def f{n}(a, b):\n    for x in range(b):\n        y = [a + (b * (x - {n})) for z in (1, 2)]\n"
    for n in range(200)
)


def test_threads_can_parse_at_the_same_time() -> None:
    """The callback of the garbage collector switches threads during a parse."""

    def take_turns(_phase: str, _info: dict[str, int]) -> None:
        for _ in range(20):
            pass

    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    gc.callbacks.append(take_turns)
    try:
        with ThreadPoolExecutor(4) as pool:
            trees = list(pool.map(lambda _: len(syntax.parse(SOURCE).body), range(24)))
    finally:
        gc.callbacks.remove(take_turns)
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
    assert trees == [200] * 24


def test_a_forked_child_does_not_wait_for_threads_of_its_parent() -> None:
    started, may_end = threading.Event(), threading.Event()

    def wait() -> int:
        started.set()
        assert may_end.wait(30)
        return 1

    cache = ProcessCache[int]()
    thread = threading.Thread(target=cache.get, args=("key", wait))
    thread.start()
    assert started.wait(30)
    cache.after_fork()
    assert cache.get("key", lambda: 2) == 2
    may_end.set()
    thread.join()
