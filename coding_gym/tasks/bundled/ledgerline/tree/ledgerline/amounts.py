"""Quantities of one commodity, and balances over several."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

_AMOUNT = re.compile(r"(?P<number>[+-]?\d[\d,]*(?:\.\d+)?)\s*(?P<commodity>[^\W\d]+|[$€£¥])")


@dataclass(frozen=True, slots=True)
class Amount:
    """So much of one commodity, such as ``12.50 EUR``."""

    quantity: Decimal
    commodity: str

    @classmethod
    def parse(cls, text: str) -> Amount:
        """Reads ``text``.

        Raises:
            ValueError: if it is not a number followed by a commodity.
        """
        match = _AMOUNT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"expected a number and a commodity, got {text.strip()!r}")
        return cls(Decimal(match["number"].replace(",", "")), match["commodity"])

    def __neg__(self) -> Amount:
        return Amount(-self.quantity, self.commodity)

    def __str__(self) -> str:
        return f"{self.quantity} {self.commodity}"

    def at(self, price: Amount) -> Amount:
        """This amount in the commodity of ``price``, the price of one unit."""
        return Amount(self.quantity * price.quantity, price.commodity)


class Balance:
    """A running sum of amounts, kept per commodity."""

    def __init__(self, amounts: Iterable[Amount] = ()) -> None:
        self._quantities: dict[str, Decimal] = {}
        for amount in amounts:
            self.add(amount)

    def __bool__(self) -> bool:
        return any(self._quantities.values())

    def __str__(self) -> str:
        return ", ".join(map(str, self.amounts())) or "0"

    def add(self, amount: Amount) -> None:
        """Adds one amount."""
        self._quantities[amount.commodity] = self.of(amount.commodity) + amount.quantity

    def of(self, commodity: str) -> Decimal:
        """The quantity of one commodity, zero if there was none."""
        return self._quantities.get(commodity, Decimal(0))

    def amounts(self) -> list[Amount]:
        """What is not zero, ordered by commodity."""
        return [
            Amount(quantity, commodity)
            for commodity, quantity in sorted(self._quantities.items())
            if quantity
        ]
