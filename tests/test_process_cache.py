import threading
from pathlib import Path

import pytest

from coding_gym.errors import InvalidArgumentError
from coding_gym.process_cache import ProcessCache, load_results, save_results


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


def test_the_result_not_asked_for_longest_is_dropped() -> None:
    computed: list[int] = []
    cache = ProcessCache[None](max_results=2)
    for number in (1, 2, 1, 3, 1, 2):
        cache.get(number, lambda number=number: computed.append(number))
    assert computed == [1, 2, 3, 2]


def test_saved_results_are_not_computed_again(tmp_path: Path) -> None:
    cache, other = ProcessCache[int](name="lengths"), ProcessCache[int]()
    assert (cache.get("one", lambda: 3), other.get("one", lambda: 4)) == (3, 4)
    save_results(tmp_path / "results", "1")
    again = ProcessCache[int](name="lengths")
    load_results(tmp_path / "results", "1")
    assert again.get("one", lambda: 5) == 3
    assert [file.name for file in tmp_path.iterdir()] == ["results"]
    with pytest.raises(InvalidArgumentError, match="written by version 1, and this is 2"):
        load_results(tmp_path / "results", "2")
