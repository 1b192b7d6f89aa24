"""What is in the stockroom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

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
        self._items: dict[str, Item] = {}

    def add(self, deliveries: Iterable[Delivery]) -> None:
        """Count ``deliveries`` in."""
        for delivery in deliveries:
            key = delivery.item.upper()
            known = self._items.get(key)
            self._items[key] = _merged(known, delivery) if known else _new(key, delivery)

    def __getitem__(self, code: str) -> Item:
        return self._items[code.upper()]

    def __iter__(self) -> Iterator[Item]:
        return iter(sorted(self._items.values(), key=lambda item: item.code))

    def __len__(self) -> int:
        return len(self._items)


def _new(code: str, delivery: Delivery) -> Item:
    return Item(code, delivery.quantity, delivery.name, delivery.minimum)


def _merged(item: Item, delivery: Delivery) -> Item:
    try:
        quantity = item.quantity + delivery.quantity
    except UnitError as error:
        raise StockroomError(f"{item.code}: {error}") from error
    return replace(
        item,
        quantity=quantity,
        name=delivery.name or item.name,
        minimum=delivery.minimum or item.minimum,
    )
