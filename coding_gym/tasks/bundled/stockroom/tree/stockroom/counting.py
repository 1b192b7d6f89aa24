"""What is there after deliveries and stocktakings, in whatever order one hears of them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

from stockroom.importer import Delivery
from stockroom.units import Quantity


def what_is_there(rows: Sequence[Delivery]) -> Quantity:
    """What was counted last, and what was delivered after that day.

    Args:
        rows: all that is known of one item, in the order in which it was read; at least one.
    """
    start: Delivery | None = None
    for row in rows:
        if row.counted and not _is_before(row, start):
            start = row
    later = [row.quantity for row in rows if not row.counted and not _is_covered(row, start)]
    return functools.reduce(operator.add, later if start is None else [start.quantity, *later])


def _is_before(row: Delivery, start: Delivery | None) -> bool:
    return start is not None and start.day is not None and (row.day is None or row.day < start.day)


def _is_covered(row: Delivery, start: Delivery | None) -> bool:
    """Whether the stocktaking ``start`` has counted that delivery."""
    return start is not None and start.day is not None and (row.day is None or row.day <= start.day)
