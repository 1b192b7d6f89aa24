"""How often, and when, a message is tried again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When to try again, in seconds, and when to give up.

    Attributes:
        max_attempts: attempts in all, the first one included.
        first_delay: how long to wait after the first failure.
        factor: how many times as long after each further one.
        max_delay: the longest time to wait.
    """

    max_attempts: int = 3
    first_delay: float = 1.0
    factor: float = 2.0
    max_delay: float = 3600.0

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts must be at least 1, got {self.max_attempts}")
        if min(self.first_delay, self.max_delay) < 0 or self.factor < 1:
            raise ValueError("delays must not be negative, and factor must be at least 1")

    def allows(self, attempts: int) -> bool:
        """Whether there may be another attempt after so many."""
        return attempts < self.max_attempts

    def delay(self, attempts: int) -> float:
        """How long to wait after so many attempts, of which there was at least one."""
        try:
            return min(self.first_delay * self.factor ** (attempts - 1), self.max_delay)
        except OverflowError:
            return self.max_delay
