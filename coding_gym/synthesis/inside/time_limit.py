"""A time limit for one test, which stops endless computation and endless waiting."""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# A process that uses less than this share of a processor is waiting, whatever the machine's load.
_IDLE_SHARE = 0.05
_SLACK_S = 1.0
# Wall seconds per processor second, for a process on a busy machine.
_WALL_PER_CPU = 4.0


class TestTookTooLong(BaseException):
    """Raised in a test that exceeds its time limit; ``except Exception`` does not catch it."""

    __test__ = False


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises `TestTookTooLong` in the block after its time limit, repeatedly until it ends.

    Args:
        seconds: Processor seconds that the block may use. In addition, it may wait for as
            many wall-clock seconds plus one.
    """
    idle_s = seconds + _SLACK_S
    end = time.monotonic() + _WALL_PER_CPU * idle_s
    seen_s = time.process_time()

    def on_computing(*_: Any) -> None:
        raise TestTookTooLong

    def on_waiting(*_: Any) -> None:
        nonlocal seen_s
        before_s, seen_s = seen_s, time.process_time()
        if seen_s - before_s < _IDLE_SHARE * idle_s or time.monotonic() > end:
            raise TestTookTooLong

    signal.signal(signal.SIGPROF, on_computing)
    signal.signal(signal.SIGALRM, on_waiting)
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
    signal.setitimer(signal.ITIMER_REAL, idle_s, idle_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
