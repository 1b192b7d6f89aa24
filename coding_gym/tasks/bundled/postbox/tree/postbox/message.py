"""Messages, as a queue keeps them and as it hands them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Message:
    """What a queue knows of a message.

    Attributes:
        number: counts the messages of the queue.
        body: what was put.
        priority: higher ones go first.
        due: when it may be taken.
        attempts: how often it has been taken.
        leased_until: when the lease ends; None while nobody has the message.
    """

    number: int
    body: Any
    priority: int
    due: float
    attempts: int = 0
    leased_until: float | None = None

    @property
    def receipt(self) -> str:
        """What proves that somebody has the current delivery of this message."""
        return f"{self.number}-{self.attempts}"

    @property
    def rank(self) -> tuple[int, int]:
        """Sorts messages in the order in which they are taken."""
        return (-self.priority, self.number)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message in somebody's hands; ``attempt`` counts from 1."""

    body: Any
    attempt: int
    receipt: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that has failed for the last time."""

    body: Any
    attempts: int
    reason: str
