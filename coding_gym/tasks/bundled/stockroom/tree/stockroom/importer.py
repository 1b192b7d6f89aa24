"""Reading delivery lists."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stockroom.encoding import read_text
from stockroom.errors import ListError, UnitError
from stockroom.units import Quantity, parse_quantity

_REQUIRED = ("item", "quantity", "unit")


@dataclass(frozen=True)
class Delivery:
    """One row of a list; what was ``counted`` at the end of a day, or else was delivered."""

    item: str
    quantity: Quantity
    name: str | None = None
    minimum: Quantity | None = None
    day: dt.date | None = None
    counted: bool = False


def read_list(path: Path) -> list[Delivery]:
    """The rows of a CSV file; raises ``ListError`` with file and row if it cannot be read."""
    text = read_text(path)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    deliveries = []
    try:
        header = [cell.strip().lower() for cell in next(rows, [])]
        missing = [column for column in _REQUIRED if column not in header]
        if missing:
            raise ListError(f"{path.name}: there is no column {missing[0]!r}")
        for cells in _filled(rows):
            try:
                deliveries.append(_delivery(dict(zip(header, cells, strict=False))))
            except UnitError as error:
                raise ListError(f"{path.name}, row {rows.line_num}: {error}") from error
    except csv.Error as error:
        raise ListError(f"{path.name}, row {rows.line_num}: {error}") from error
    return deliveries


def _delimiter(text: str) -> str:
    """The delimiter that occurs most often in the first line."""
    line = text.partition("\n")[0]
    return max(",;\t", key=line.count)


def _filled(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    for row in rows:
        cells = [cell.strip() for cell in row]
        if any(cells):
            yield cells


def _delivery(row: dict[str, str]) -> Delivery:
    if not row["item"]:
        raise UnitError("there is no item")
    unit = row.get("unit", "")
    minimum = row.get("minimum")
    day = _day(row["date"]) if row.get("date") else None
    counted = row.get("counted", "").lower() == "yes"
    if counted and day is None:
        raise UnitError("what was counted needs a date")
    return Delivery(
        item=row["item"],
        quantity=parse_quantity(row.get("quantity", ""), unit),
        name=row.get("name") or None,
        minimum=parse_quantity(minimum, unit) if minimum else None,
        day=day,
        counted=counted,
    )


def _day(text: str) -> dt.date:
    try:
        return dt.datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError as error:
        raise UnitError(f"{text!r} is not a date such as 2024-05-31") from error
