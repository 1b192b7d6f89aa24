"""The inventory as a table."""

from __future__ import annotations

from collections.abc import Iterable

from stockroom.inventory import Item

_HEADER = ("item", "name", "quantity", "minimum", "")


def render(items: Iterable[Item], *, low_only: bool = False) -> str:
    """A table with a line per item; columns that are empty throughout are left out."""
    rows = [_cells(item) for item in items if item.is_low or not low_only]
    if not rows:
        return "nothing to show\n"
    wanted = [column for column in range(len(_HEADER)) if any(row[column] for row in rows)]
    table = [[row[column] for column in wanted] for row in (_HEADER, *rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )
    return "".join(line + "\n" for line in lines)


def _cells(item: Item) -> tuple[str, ...]:
    return (
        item.code,
        item.name or "",
        str(item.quantity),
        "" if item.minimum is None else str(item.minimum),
        "low" if item.is_low else "",
    )
