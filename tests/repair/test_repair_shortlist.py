import threading
from contextlib import ExitStack
from typing import Any

import pytest

from coding_gym.errors import SandboxError
from coding_gym.repair.shortlist import Shortlist, Shortlists


def ask(shortlists: Shortlists, number: int = 3, opens: Any = ExitStack) -> Shortlist:
    """Asks for a program's shortlist; nothing is run in what is opened for it."""
    return shortlists.get("key", opens, "-q", number)


def test_threads_that_ask_together_find_it_once() -> None:
    begun, may_end = threading.Event(), threading.Event()
    calls, found = [], []

    def find(*arguments: Any) -> Shortlist:
        calls.append(arguments)
        begun.set()
        assert may_end.wait(30)
        return Shortlist.of(None, 1)

    shortlists = Shortlists(find)

    threads = [threading.Thread(target=lambda: found.append(ask(shortlists))) for _ in range(8)]
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
    thread = threading.Thread(target=ask, args=(shortlists,))
    thread.start()
    assert begun.wait(30)
    shortlists.after_fork()
    assert ask(shortlists).baseline is None
    may_end.set()
    thread.join()


def test_other_programs_do_not_wait() -> None:
    def find(sandbox: Any, arguments: str, num_candidates: int) -> Shortlist:
        if num_candidates == 1:
            ask(shortlists, 2)
        return Shortlist.of(None, 1)

    shortlists = Shortlists(find)
    assert ask(shortlists, 1).baseline is None


def test_a_failure_of_our_side_is_not_remembered() -> None:
    failures = [SandboxError("it died")]
    closed: list[str] = []

    def find(*_: Any) -> Shortlist:
        if failures:
            raise failures.pop()
        return Shortlist.of(None, 1)

    def opens() -> ExitStack:
        place = ExitStack()
        place.callback(closed.append, "closed")
        return place

    shortlists = Shortlists(find)
    with pytest.raises(SandboxError):
        ask(shortlists, opens=opens)
    assert ask(shortlists, opens=opens).baseline is None
    assert closed == ["closed", "closed"]


def test_what_was_not_asked_for_the_longest_time_is_forgotten() -> None:
    keys: list[int] = []

    def find(sandbox: Any, arguments: str, num_candidates: int) -> Shortlist:
        keys.append(num_candidates)
        return Shortlist.of(None, 1)

    shortlists = Shortlists(find, max_remembered=2)
    for number in (1, 2, 1, 3, 1, 2):
        ask(shortlists, number)
    assert keys == [1, 2, 3, 2]
