"""A queue of messages."""

from __future__ import annotations

import time
from copy import deepcopy
from typing import Any

from postbox.clock import Clock
from postbox.errors import StaleReceipt
from postbox.message import DeadLetter, Delivery, Message
from postbox.retry import RetryPolicy


class Queue:
    """Messages that are handed out one by one, until somebody has dealt with them.

    Args:
        lease: how long a delivery is somebody's, in seconds.
        retry: what happens to messages that failed.
        clock: gives the time.
    """

    def __init__(
        self,
        *,
        lease: float = 30.0,
        retry: RetryPolicy | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        if lease <= 0:
            raise ValueError(f"lease must be positive, got {lease}")
        self._lease = lease
        self._retry = retry or RetryPolicy()
        self._clock = clock
        self._last_number = 0
        self._messages: dict[int, Message] = {}
        self._dead: list[DeadLetter] = []

    def __len__(self) -> int:
        """How many messages are waiting, delayed or leased."""
        self._take_back()
        return len(self._messages)

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """The messages that have failed for the last time, in the order in which they did."""
        self._take_back()
        return deepcopy(self._dead)

    def put(self, body: Any, *, priority: int = 0, delay: float = 0.0) -> None:
        """Adds a message that can be taken after ``delay`` seconds."""
        self._last_number += 1
        due = self._clock() + delay
        message = Message(self._last_number, deepcopy(body), priority, due)
        self._messages[message.number] = message

    def take(self) -> Delivery | None:
        """The next message, which is leased from now on; None if there is none at the moment."""
        self._take_back()
        now = self._clock()
        waiting = (m for m in self._messages.values() if m.leased_until is None and m.due <= now)
        message = min(waiting, key=lambda m: m.rank, default=None)
        if message is None:
            return None
        message.attempts += 1
        message.leased_until = now + self._lease
        return Delivery(deepcopy(message.body), message.attempts, message.receipt)

    def ack(self, receipt: str) -> None:
        """Removes a message that has been dealt with.

        Raises:
            StaleReceipt: if it is not in the hands of the caller any more.
        """
        del self._messages[self._held(receipt).number]

    def nack(self, receipt: str, reason: str = "") -> None:
        """Puts a message back that failed, or gives it up.

        Raises:
            StaleReceipt: if it is not in the hands of the caller any more.
        """
        message = self._held(receipt)
        self._fail(message, reason, self._retry.delay(message.attempts))

    def extend(self, receipt: str, seconds: float) -> None:
        """Lets a lease end so many seconds from now.

        Raises:
            StaleReceipt: if it has ended already.
        """
        self._held(receipt).leased_until = self._clock() + seconds

    def _held(self, receipt: str) -> Message:
        self._take_back()
        held = (m for m in self._messages.values() if m.leased_until is not None)
        message = next((m for m in held if m.receipt == receipt), None)
        if message is None:
            raise StaleReceipt(f"nothing is held with the receipt {receipt!r}")
        return message

    def _take_back(self) -> None:
        """Ends the leases whose time is over."""
        now = self._clock()
        for message in list(self._messages.values()):
            if message.leased_until is not None and message.leased_until <= now:
                self._fail(message, "the lease has ended", 0.0)

    def _fail(self, message: Message, reason: str, delay: float) -> None:
        if self._retry.allows(message.attempts):
            message.leased_until = None
            message.due = self._clock() + delay
        else:
            del self._messages[message.number]
            self._dead.append(DeadLetter(message.body, message.attempts, reason))
