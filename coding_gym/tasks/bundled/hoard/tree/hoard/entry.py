"""Clocks, and values with a deadline on one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Clock = Callable[[], float]


class ManualClock:
    """A clock for tests; it stands still until it is told to advance."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Moves the clock forward."""
        self.now += seconds


@dataclass(frozen=True, slots=True)
class Entry:
    """What a cache holds for one key.

    Attributes:
        value: what was stored.
        deadline: the reading of the clock from which on the entry has expired; None for never.
    """

    value: Any
    deadline: float | None = None

    @classmethod
    def lasting(cls, value: Any, ttl: float | None, now: float) -> Entry:
        """An entry that is written ``now`` and lives for ``ttl`` seconds."""
        return cls(value, None if ttl is None else now + ttl)

    def is_expired(self, now: float) -> bool:
        """Whether the deadline has been reached."""
        return self.deadline is not None and now >= self.deadline

    def time_left(self, now: float) -> float | None:
        """Seconds until the deadline; None if there is none."""
        return None if self.deadline is None else self.deadline - now


def check_ttl(ttl: float | None) -> float | None:
    """Gives ``ttl`` back.

    Raises:
        ValueError: if it is not positive.
    """
    if ttl is not None and ttl <= 0:
        raise ValueError(f"ttl must be positive, got {ttl}")
    return ttl
