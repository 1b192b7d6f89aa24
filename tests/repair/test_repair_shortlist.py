import threading
from typing import Any

import pytest

from coding_gym.errors import SandboxError
from coding_gym.repair.shortlist import Shortlist, Shortlists


class Place:
    """Stands where a sandbox would; nothing is run in it."""

    def __init__(self) -> None:
        self.closed = False

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True


def test_threads_that_ask_together_find_it_once() -> None:
    begun, may_end = threading.Event(), threading.Event()
    calls, found = [], []

    def find(*arguments: Any) -> Shortlist:
        calls.append(arguments)
        begun.set()
        assert may_end.wait(30)
        return Shortlist.of(None, 1)

    shortlists = Shortlists(find)

    def ask() -> None:
        found.append(shortlists.get("key", Place, "-q", 3))  # type: ignore[arg-type]

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert begun.wait(30)
    may_end.set()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert len(found) == 8
    assert len({id(shortlist) for shortlist in found}) == 1


def test_a_forked_child_does_not_wait_for_a_thread_of_its_parent() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def find(*_: Any) -> Shortlist:
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            assert may_end.wait(30)
        return Shortlist.of(None, 1)

    shortlists = Shortlists(find)

    def ask() -> Shortlist:
        return shortlists.get("key", Place, "-q", 3)  # type: ignore[arg-type]

    thread = threading.Thread(target=ask)
    thread.start()
    assert begun.wait(30)
    shortlists.after_fork()
    assert ask().baseline is None
    may_end.set()
    thread.join()


def test_other_programs_do_not_wait() -> None:
    def find(sandbox: Any, arguments: str, num_candidates: int) -> Shortlist:
        if num_candidates == 1:
            shortlists.get("key", Place, "-q", 2)  # type: ignore[arg-type]
        return Shortlist.of(None, 1)

    shortlists = Shortlists(find)
    assert shortlists.get("key", Place, "-q", 1).baseline is None  # type: ignore[arg-type]


def test_a_failure_of_our_side_is_not_remembered() -> None:
    failures = [SandboxError("it died")]
    places: list[Place] = []

    def find(*_: Any) -> Shortlist:
        if failures:
            raise failures.pop()
        return Shortlist.of(None, 1)

    def opens() -> Any:
        places.append(Place())
        return places[-1]

    shortlists = Shortlists(find)
    with pytest.raises(SandboxError):
        shortlists.get("key", opens, "-q", 1)
    assert shortlists.get("key", opens, "-q", 1).baseline is None
    assert [place.closed for place in places] == [True, True]


def test_what_was_not_asked_for_the_longest_time_is_forgotten() -> None:
    keys: list[int] = []

    def find(sandbox: Any, arguments: str, num_candidates: int) -> Shortlist:
        keys.append(num_candidates)
        return Shortlist.of(None, 1)

    shortlists = Shortlists(find, max_remembered=2)
    for number in (1, 2, 1, 3, 1, 2):
        shortlists.get("key", Place, "-q", number)  # type: ignore[arg-type]
    assert keys == [1, 2, 3, 2]
