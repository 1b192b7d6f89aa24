"""Time limits that a busy machine does not change: seconds of the processor come first."""

from __future__ import annotations

import os
import time

# What only waits is ended by the clock, which must not end what computes on a busy machine.
_WALL_PER_CPU = 3.0
_SLACK_S = 4.0


def cpu_s() -> float:
    """Returns the seconds of the processor that this process took, and those it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def wall_s(seconds: float) -> float:
    """Returns how long something that may take so much of the processor may last by the clock."""
    return _SLACK_S + _WALL_PER_CPU * seconds


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
        return cpu > seconds or wall > wall_s(seconds)

    def left_s(self, seconds: float) -> float:
        """Returns how many seconds of the processor are left of so many; 0 past their end."""
        return 0.0 if self.is_past(seconds) else max(0.0, seconds - self.spent()[0])
