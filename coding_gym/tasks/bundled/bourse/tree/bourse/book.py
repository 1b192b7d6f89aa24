"""The book: what waits, and what a new order does to it."""

from __future__ import annotations

from collections.abc import Iterator

from bourse.errors import OrderError
from bourse.level import Level
from bourse.model import Kind, Order, Side, Trade


class Book:
    """All orders that wait, and the clock.

    Attributes:
        now: seconds since midnight; whoever submits orders sets it.
    """

    def __init__(self) -> None:
        self.now = 0
        self._orders: dict[str, Order] = {}
        self._levels: dict[Side, dict[int, Level]] = {Side.BUY: {}, Side.SELL: {}}

    def __contains__(self, name: str) -> bool:
        return name in self._orders

    def best(self, side: Side) -> int | None:
        """The best price of a side, or None if nobody is there."""
        return next(iter(self._prices(side)), None)

    def depth(self, side: Side) -> list[tuple[int, int]]:
        """The prices of a side, best first, with the quantity that is shown."""
        return [(price, self._levels[side][price].shown) for price in self._prices(side)]

    def open_quantity(self, name: str) -> int:
        """What is left of an order, with its reserve.

        Raises:
            OrderError: if it is not in the book.
        """
        return self._find(name).quantity

    def submit(
        self,
        name: str,
        side: Side,
        price: int,
        quantity: int,
        *,
        kind: Kind = Kind.LIMIT,
        peak: int | None = None,
    ) -> list[Trade]:
        """Trades what can be traded, and leaves the rest in the book if the kind allows.

        Raises:
            OrderError: if the order is impossible or its name is taken.
        """
        if name in self._orders:
            raise OrderError(f"there is an order {name} already")
        order = Order(name, side, price, quantity, peak)
        if kind is Kind.KILL and not self._can_fill(order):
            return []
        trades = list(self._match(order))
        if order.quantity and kind is Kind.LIMIT:
            self._rest(order)
        return trades

    def cancel(self, name: str) -> int:
        """Takes an order out of the book and gives what was left of it.

        Raises:
            OrderError: if it is not in the book.
        """
        return self._pull(self._find(name)).quantity

    def amend(
        self, name: str, *, price: int | None = None, quantity: int | None = None
    ) -> list[Trade]:
        """Changes the price or the open quantity of an order, and gives the trades that follow.

        Raises:
            OrderError: if it is not in the book, or would be impossible.
        """
        old = self._find(name)
        new = Order(name, old.side, price or old.price, quantity or old.quantity, old.peak)
        if new.price == old.price and new.quantity <= old.quantity:
            old.reduce(new.quantity)
            return []
        self._pull(old)
        return self.submit(name, new.side, new.price, new.quantity, peak=new.peak)

    def _find(self, name: str) -> Order:
        if name not in self._orders:
            raise OrderError(f"there is no order {name}")
        return self._orders[name]

    def _prices(self, side: Side) -> list[int]:
        return sorted(self._levels[side], reverse=side is Side.BUY)

    def _can_fill(self, order: Order) -> bool:
        levels = self._levels[order.side.other].items()
        return order.quantity <= sum(lvl.total for price, lvl in levels if order.accepts(price))

    def _match(self, order: Order) -> Iterator[Trade]:
        side = order.side.other
        for price in self._prices(side):
            if not order.quantity or not order.accepts(price):
                return
            level = self._levels[side][price]
            for maker, part in level.fill(order.quantity):
                order.quantity -= part
                yield Trade(maker.name, order.name, price, part, self.now)
                if not maker.quantity:
                    del self._orders[maker.name]
            if not level:
                del self._levels[side][price]

    def _rest(self, order: Order) -> None:
        order.show_next()
        self._orders[order.name] = order
        self._levels[order.side].setdefault(order.price, Level()).add(order)

    def _pull(self, order: Order) -> Order:
        level = self._levels[order.side][order.price]
        level.remove(order.name)
        if not level:
            del self._levels[order.side][order.price]
        return self._orders.pop(order.name)
