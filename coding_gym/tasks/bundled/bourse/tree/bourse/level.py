"""The orders of one price, in the order in which they have their turn."""

from __future__ import annotations

from collections.abc import Iterator

from bourse.model import Order


class Level:
    """A queue of orders."""

    def __init__(self) -> None:
        self._queue: dict[str, Order] = {}

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def shown(self) -> int:
        """The quantity that everybody can see."""
        return sum(order.shown for order in self._queue.values())

    @property
    def total(self) -> int:
        """The quantity that can be traded, with what nobody sees."""
        return sum(order.quantity for order in self._queue.values())

    def add(self, order: Order) -> None:
        """Puts an order at the end."""
        self._queue[order.name] = order

    def remove(self, name: str) -> None:
        """Takes an order out."""
        del self._queue[name]

    def fill(self, quantity: int) -> Iterator[tuple[Order, int]]:
        """Trades up to a quantity, and gives the orders in turn with how much of each."""
        while quantity and self._queue:
            order = next(iter(self._queue.values()))
            part = min(quantity, order.shown)
            order.take(part)
            quantity -= part
            if not order.shown:
                self.remove(order.name)
                if order.quantity:
                    order.show_next()
                    self.add(order)
            yield order, part
