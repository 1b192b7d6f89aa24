"""Five-field expressions, matched against readings of a wall clock."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from cronwise import fields
from cronwise.errors import CronError, NeverRunsError

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_SPECS = (fields.MINUTE, fields.HOUR, fields.DAY, fields.MONTH, fields.WEEKDAY)
# The calendar repeats every 28 years, or 40 across a year such as 2100: a match comes by then.
_HORIZON_YEARS = 40


@dataclass(frozen=True)
class CronExpression:
    """The readings of the clock that an expression names.

    Attributes:
        text: the expression as it was written.
        follows_clock: whether the hour field starts with ``*``, so that the expression asks for
            regular intervals rather than for certain times of the day.
    """

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    follows_clock: bool
    any_day: bool
    any_weekday: bool

    @classmethod
    def parse(cls, text: str) -> CronExpression:
        """Reads an expression or a macro.

        Raises:
            CronError: if it is malformed.
        """
        parts = MACROS.get(text.strip().lower(), text).split()
        if len(parts) != len(_SPECS):
            raise CronError(f"expected five fields, got {len(parts)}: {text!r}")
        minutes, hours, days, months, weekdays = map(fields.parse_field, _SPECS, parts)
        return cls(
            text,
            minutes,
            hours,
            days,
            months,
            weekdays,
            follows_clock=parts[1].startswith("*"),
            any_day=parts[2].startswith("*"),
            any_weekday=parts[4].startswith("*"),
        )

    def matches_date(self, date: dt.date) -> bool:
        """Whether the expression runs on this day at all."""
        if date.month not in self.months:
            return False
        is_day = date.day in self.days
        is_weekday = date.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return is_day and is_weekday
        return is_day or is_weekday

    def matches(self, reading: dt.datetime) -> bool:
        """Whether the expression names this reading of the clock."""
        return (
            reading.minute in self.minutes
            and reading.hour in self.hours
            and self.matches_date(reading.date())
        )

    def first_from(self, reading: dt.datetime) -> dt.datetime:
        """The first named reading at or after ``reading``, a naive datetime of whole minutes.

        Raises:
            NeverRunsError: if there is none.
        """
        date = reading.date()
        earliest = reading.time()
        last_year = date.year + _HORIZON_YEARS
        while date.year <= last_year:
            if date.month not in self.months:
                date = _first_of_next_month(date)
            else:
                time = self._first_time(earliest) if self.matches_date(date) else None
                if time is not None:
                    return dt.datetime.combine(date, time)
                date += dt.timedelta(days=1)
            earliest = dt.time()
        raise NeverRunsError(f"no day matches {self.text!r}")

    def _first_time(self, earliest: dt.time) -> dt.time | None:
        for hour in sorted(self.hours):
            for minute in sorted(self.minutes):
                if (hour, minute) >= (earliest.hour, earliest.minute):
                    return dt.time(hour, minute)
        return None


def _first_of_next_month(date: dt.date) -> dt.date:
    return (date.replace(day=1) + dt.timedelta(days=32)).replace(day=1)
