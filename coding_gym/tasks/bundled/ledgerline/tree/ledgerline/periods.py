"""Spans of days for reports."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

_POINT = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?")


@dataclass(frozen=True, slots=True)
class Period:
    """The days from ``begin`` up to, but not including, ``end``; None leaves a side open."""

    begin: dt.date | None = None
    end: dt.date | None = None

    @classmethod
    def parse(cls, text: str) -> Period:
        """Reads ``2024``, ``2024-01``, ``2024-01-05`` or two of these joined by ``..``.

        Raises:
            ValueError: if it is none of these.
        """
        first, is_span, second = text.strip().partition("..")
        if not is_span:
            return cls(*_extent(first))
        begin = _extent(first)[0] if first else None
        end = _extent(second)[0] if second else None
        if begin and end and end < begin:
            raise ValueError(f"period ends before it begins: {text.strip()}")
        return cls(begin, end)

    def __contains__(self, date: dt.date) -> bool:
        if self.begin is not None and date < self.begin:
            return False
        return self.end is None or date < self.end


def _extent(text: str) -> tuple[dt.date, dt.date]:
    """The first day of a year, month or day, and the first day after it."""
    match = _POINT.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a year, month or day, got {text!r}")
    year, month, day = match.groups()
    begin = dt.date(int(year), int(month or 1), int(day or 1))
    if day:
        return begin, begin + dt.timedelta(days=1)
    if month and begin.month < 12:
        return begin, begin.replace(month=begin.month + 1)
    return begin, dt.date(begin.year + 1, 1, 1)
