"""Orders and trades."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from bourse.errors import OrderError


class Side(StrEnum):
    """Who an order is for."""

    BUY = "buy"
    SELL = "sell"

    @property
    def other(self) -> Side:
        """The side that this one trades with."""
        return Side.SELL if self is Side.BUY else Side.BUY


class Kind(StrEnum):
    """What becomes of the part of an order that cannot trade at once."""

    LIMIT = "limit"
    IMMEDIATE = "immediate"
    KILL = "kill"


@dataclass(frozen=True)
class Trade:
    """Something that changed hands.

    Attributes:
        maker: the order that was there first.
        taker: the order that came.
        price: in cents.
        at: seconds since midnight.
    """

    maker: str
    taker: str
    price: int
    quantity: int
    at: int


@dataclass
class Order:
    """An order in the book.

    Attributes:
        price: the limit, in cents.
        quantity: what is still open, with the reserve.
        peak: how much of it is shown at most, or None for all.
        shown: how much of it is shown now.
    """

    name: str
    side: Side
    price: int
    quantity: int
    peak: int | None = None
    shown: int = field(init=False)

    def __post_init__(self) -> None:
        for what, number in (("price", self.price), ("quantity", self.quantity)):
            if number < 1:
                raise OrderError(f"the {what} of {self.name} must be at least 1, got {number}")
        if self.peak is not None and self.peak < 1:
            raise OrderError(f"the peak of {self.name} must be at least 1, got {self.peak}")
        self.shown = min(self.peak or self.quantity, self.quantity)

    def accepts(self, price: int) -> bool:
        """Whether the order may trade at a price."""
        return price <= self.price if self.side is Side.BUY else price >= self.price

    def take(self, quantity: int) -> None:
        """Trades a part of what is shown."""
        self.quantity -= quantity
        self.shown -= quantity

    def show_next(self) -> None:
        """Shows the next part of the reserve."""
        self.shown = self.quantity if self.peak is None else min(self.peak, self.quantity)

    def reduce(self, quantity: int) -> None:
        """Lowers the open quantity, at the expense of the reserve first."""
        self.quantity = quantity
        self.shown = min(self.shown, quantity)
