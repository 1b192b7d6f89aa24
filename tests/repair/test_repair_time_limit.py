"""The limit of one test: on computing, and on waiting."""

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from coding_gym.synthesis.inside.time_limit import TestTookTooLong, limited

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    was = {number: signal.getsignal(number) for number in (signal.SIGPROF, signal.SIGALRM)}
    yield
    for number, handler in was.items():
        signal.signal(number, handler)


def compute_for_ever() -> None:
    while True:
        pass


def wait_for_ever() -> None:
    while True:
        signal.pause()


def swallow_twice() -> None:
    for _ in range(2):
        with suppress(TestTookTooLong):
            compute_for_ever()
    compute_for_ever()


@pytest.mark.parametrize("work", [compute_for_ever, wait_for_ever, swallow_twice])
def test_what_does_not_end_is_ended(work: Callable[[], None]) -> None:
    with pytest.raises(TestTookTooLong), limited(0.1):
        work()


def test_what_ends_in_time_leaves_no_timer() -> None:
    with limited(5.0):
        assert signal.getitimer(signal.ITIMER_PROF)[0] > 0
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
