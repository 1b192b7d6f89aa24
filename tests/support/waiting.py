"""Bounded waiting for a condition."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], timeout_s: float = 30.0) -> T:
    """Returns the first true value of a condition; fails when there is none in time."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"the condition did not hold in {timeout_s} seconds"
        time.sleep(0.01)
    return found
