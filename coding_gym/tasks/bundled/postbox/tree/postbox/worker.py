"""Handles the messages of a queue."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from postbox.broker import Broker
from postbox.errors import StaleReceipt
from postbox.message import Delivery

Handler = Callable[[Any, Broker], None]
"""Deals with the body of a message; what it publishes is sent if it raises nothing."""


class Worker:
    """Takes messages from a queue and gives them to a handler.

    Args:
        broker: has the queue.
        queue: its name.
        handler: deals with the messages; one that raises an exception fails.

    Raises:
        UnknownQueue: if there is no such queue.
    """

    def __init__(self, broker: Broker, queue: str, handler: Handler) -> None:
        self._broker = broker
        self._queue = broker.existing(queue)
        self._handler = handler

    def step(self) -> bool:
        """Handles one message; False if there was none."""
        delivery = self._queue.take()
        if delivery is None:
            return False
        try:
            with self._broker.outbox():
                self._handler(delivery.body, self._broker)
                self._queue.ack(delivery.receipt)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is its answer
            self._fail(delivery, f"{type(error).__name__}: {error}")
        return True

    def run(self, limit: int | None = None) -> int:
        """Handles messages until there are none, or ``limit`` are done; says how many."""
        count = 0
        while (limit is None or count < limit) and self.step():
            count += 1
        return count

    def _fail(self, delivery: Delivery, reason: str) -> None:
        with suppress(StaleReceipt):  # it took too long, and the message has moved on
            self._queue.nack(delivery.receipt, reason)
