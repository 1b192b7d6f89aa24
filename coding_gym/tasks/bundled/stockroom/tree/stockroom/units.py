"""Quantities and their units."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from stockroom.errors import UnitError

# Of each unit: the unit in which its kind is counted, and how much of that one is.
_UNITS = {
    "pcs": ("pcs", Decimal(1)),
    "g": ("kg", Decimal("0.001")),
    "kg": ("kg", Decimal(1)),
    "t": ("kg", Decimal(1000)),
    "ml": ("l", Decimal("0.001")),
    "l": ("l", Decimal(1)),
    "mm": ("m", Decimal("0.001")),
    "cm": ("m", Decimal("0.01")),
    "m": ("m", Decimal(1)),
}
_NUMBER = re.compile(r"([+-]?)([0-9]+)(?:[.,]([0-9]+))?")


@dataclass(frozen=True)
class Quantity:
    """An amount in the unit in which its kind is counted."""

    amount: Decimal
    unit: str

    def __add__(self, other: Quantity) -> Quantity:
        self._require_same_kind(other)
        return Quantity(self.amount + other.amount, self.unit)

    def __lt__(self, other: Quantity) -> bool:
        self._require_same_kind(other)
        return self.amount < other.amount

    def __str__(self) -> str:
        whole, _, decimals = f"{abs(self.amount):f}".partition(".")
        grouped = f"{int(whole):,}".replace(",", " ")
        decimals = decimals.rstrip("0")
        sign = "-" if self.amount < 0 else ""
        return f"{sign}{grouped}{'.' + decimals if decimals else ''} {self.unit}"

    def _require_same_kind(self, other: Quantity) -> None:
        if self.unit != other.unit:
            raise UnitError(f"{self.unit} and {other.unit} do not go together")


def parse_quantity(number: str, unit: str) -> Quantity:
    """A quantity from its two columns, such as ``"1,5"`` and ``"kg"``."""
    found = _NUMBER.fullmatch(number.strip())
    if found is None:
        raise UnitError(f"{number!r} is not a number")
    known = _UNITS.get(unit.strip().lower())
    if known is None:
        raise UnitError(f"{unit!r} is not one of {', '.join(_UNITS)}")
    counted_in, factor = known
    sign, whole, decimals = found.groups()
    return Quantity(Decimal(f"{sign}{whole}.{decimals or 0}") * factor, counted_in)
