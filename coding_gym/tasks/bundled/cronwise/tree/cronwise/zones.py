"""Time zones by name, zones with daylight saving time, and their transitions."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Sequence

from cronwise.errors import CronError

MINUTE = dt.timedelta(minutes=1)
HOUR = dt.timedelta(hours=1)
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")


def resolve_zone(zone: str | dt.tzinfo) -> dt.tzinfo:
    """The zone of a name: ``UTC``, an offset such as ``+05:30``, or a key of the zone database.

    Raises:
        CronError: if it is none of these.
    """
    if isinstance(zone, dt.tzinfo):
        return zone
    if zone.upper() in ("UTC", "Z"):
        return dt.UTC
    match = _OFFSET.fullmatch(zone)
    try:
        if match is None:
            return zoneinfo.ZoneInfo(zone)
        offset = dt.timedelta(hours=int(match[2]), minutes=int(match[3]))
        return dt.timezone(-offset if match[1] == "-" else offset)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise CronError(f"unknown time zone {zone!r}") from error


class SeasonalZone(dt.tzinfo):
    """A zone whose clocks go forward by ``shift`` in some seasons.

    Args:
        name: what ``str`` and ``tzname`` give.
        offset: standard time minus UTC.
        seasons: begin and end of each season of daylight saving time, as naive UTC, in order.
        shift: how far the clocks go forward.
    """

    def __init__(
        self,
        name: str,
        offset: dt.timedelta,
        seasons: Sequence[tuple[dt.datetime, dt.datetime]],
        shift: dt.timedelta = HOUR,
    ) -> None:
        self._name = name
        self._offset = offset
        self._seasons = tuple(seasons)
        self._shift = shift

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"SeasonalZone({self._name!r})"

    def tzname(self, when: dt.datetime | None) -> str:
        """The name of the zone."""
        return self._name

    def utcoffset(self, when: dt.datetime | None) -> dt.timedelta:
        """Local time minus UTC at a reading of the local clock."""
        return self._offset + self.dst(when)

    def dst(self, when: dt.datetime | None) -> dt.timedelta:
        """How far the clocks are forward at a reading of the local clock."""
        if when is None:
            return dt.timedelta(0)
        standard = when.replace(tzinfo=None) - self._offset
        shifted = standard - self._shift
        if when.fold:
            return self._shift if self._in_season(standard) else dt.timedelta(0)
        return self._shift if self._in_season(shifted) else dt.timedelta(0)

    def fromutc(self, when: dt.datetime) -> dt.datetime:
        """The local reading at an instant."""
        instant = when.replace(tzinfo=None)
        if self._in_season(instant):
            return when + self._offset + self._shift
        local = when + self._offset
        is_second_pass = self._in_season(instant - self._shift)
        return local.replace(fold=1) if is_second_pass else local

    def _in_season(self, instant: dt.datetime) -> bool:
        return any(begin <= instant < end for begin, end in self._seasons)


def offset_at(instant: dt.datetime, zone: dt.tzinfo) -> dt.timedelta:
    """Local time minus UTC at an instant, which may be given in any zone."""
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def next_transition(start: dt.datetime, end: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """An instant, to the minute, at which the offset of ``start`` gives way to another.

    Args:
        start: an instant before the transition, in UTC.
        end: an instant after it, in UTC, with another offset.
        zone: whose clocks change.
    """
    before = offset_at(start, zone)
    low, high = 0, (end - start) // MINUTE
    while high - low > 1:
        middle = (low + high) // 2
        if offset_at(start + middle * MINUTE, zone) == before:
            low = middle
        else:
            high = middle
    return start + high * MINUTE
