"""What is in the stockroom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stockroom.counting import what_is_there
from stockroom.errors import StockroomError, UnitError
from stockroom.importer import Delivery
from stockroom.units import Quantity


@dataclass(frozen=True)
class Item:
    """An item and how much of it there is."""

    code: str
    quantity: Quantity
    name: str | None = None
    minimum: Quantity | None = None

    @property
    def is_low(self) -> bool:
        """Whether there is less than there should be."""
        return self.minimum is not None and self.quantity < self.minimum


class Inventory:
    """Items by code; iterates in the order of the codes."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Delivery]] = {}

    def add(self, deliveries: Iterable[Delivery]) -> None:
        """Count ``deliveries`` in."""
        for delivery in deliveries:
            code = delivery.item.upper()
            rows = self._rows.setdefault(code, [])
            if rows:
                _require_same_kind(code, rows[0], delivery)
            rows.append(delivery)

    def __getitem__(self, code: str) -> Item:
        return _item(code.upper(), self._rows[code.upper()])

    def __iter__(self) -> Iterator[Item]:
        return (_item(code, rows) for code, rows in sorted(self._rows.items()))

    def __len__(self) -> int:
        return len(self._rows)


def _item(code: str, rows: Sequence[Delivery]) -> Item:
    names = [row.name for row in rows if row.name is not None]
    minimums = [row.minimum for row in rows if row.minimum is not None]
    return Item(
        code,
        what_is_there(rows),
        names[-1] if names else None,
        minimums[-1] if minimums else None,
    )


def _require_same_kind(code: str, known: Delivery, delivery: Delivery) -> None:
    try:
        known.quantity + delivery.quantity
    except UnitError as error:
        raise StockroomError(f"{code}: {error}") from error
