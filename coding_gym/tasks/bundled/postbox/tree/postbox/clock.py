"""Where the time comes from."""

from __future__ import annotations

from collections.abc import Callable

Clock = Callable[[], float]
"""Gives the current time in seconds."""


class ManualClock:
    """A clock that stands still until it is told to advance."""

    def __init__(self, now: float = 0.0) -> None:
        self._now = now

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self._now += seconds
