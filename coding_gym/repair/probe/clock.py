"""Time limits that a busy machine does not change: seconds of the processor come first."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from coding_gym.synthesis.inside.forking import run_forked

if TYPE_CHECKING:
    from collections.abc import Callable

# What computes on a busy machine may last a few times longer by the clock.
_WALL_PER_CPU = 3.0
_SLACK_S = 4.0
# The shell ends a command, and with it this process and all it found, after 120 seconds.
_REQUEST_S = 100.0
_LATE_S = 20.0
_MEMORY_BYTES = 2 << 30
_FILE_BYTES = 64 << 20


class _Request:
    end = float("inf")  # by the clock


def begin_request() -> None:
    """Bounds what this process and those it forks do from now on."""
    _Request.end = time.monotonic() + _REQUEST_S


def is_late() -> bool:
    """Whether nothing more should be begun, so that the request is answered in time."""
    return _Request.end - time.monotonic() < _LATE_S


def cpu_s() -> float:
    """Returns the seconds of the processor that this process took, and that its ended ones did."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def wall_s(seconds: float) -> float:
    """Returns how long something that may take so much of the processor may last by the clock."""
    return _SLACK_S + _WALL_PER_CPU * seconds


def until_answer_s(seconds: float) -> float:
    """Returns ``seconds``, or what is left of the request where that is less."""
    return max(0.0, min(seconds, _Request.end - time.monotonic()))


def forked(function: Callable[[], Any], seconds: float, waits_s: float = 0.0) -> Any:
    """Returns the result of a function in a forked child, or None if it died or took too long.

    Args:
        function: Gives a JSON value that is not None.
        seconds: Processor seconds that the child may use; by the clock a few times that.
        waits_s: Seconds of the clock besides.
    """
    end = time.monotonic() + until_answer_s(wall_s(seconds) + waits_s)
    return run_forked(
        function,
        seconds,
        lambda _: time.monotonic() > end,
        memory_bytes=_MEMORY_BYTES,
        file_bytes=_FILE_BYTES,
    )


class Stopwatch:
    """Measures what is done in this process and in those it starts and waits for.

    Args:
        spent: What `spent` gave in another process that this one carries on for.
    """

    def __init__(self, spent: tuple[float, float] = (0.0, 0.0)) -> None:
        self._start = (cpu_s() - spent[0], time.monotonic() - spent[1])

    def spent(self) -> tuple[float, float]:
        """Returns seconds of the processor and of the clock."""
        return cpu_s() - self._start[0], time.monotonic() - self._start[1]

    def seconds(self) -> float:
        """Returns seconds of the processor, or a third of those of the clock where that is more."""
        cpu, wall = self.spent()
        return max(cpu, wall / _WALL_PER_CPU)

    def is_past(self, seconds: float) -> bool:
        """Whether that much of the processor is spent, or more of the clock than goes with it."""
        cpu, wall = self.spent()
        return cpu > seconds or wall > wall_s(seconds) or is_late()

    def left_s(self, seconds: float) -> float:
        """Returns how many seconds of the processor are left of so many; 0 past their end."""
        return 0.0 if self.is_past(seconds) else max(0.0, seconds - self.spent()[0])
