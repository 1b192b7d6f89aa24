"""Run times of an expression in a time zone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from itertools import islice

from cronwise.errors import CronError
from cronwise.expression import CronExpression
from cronwise.zones import MINUTE, next_transition, offset_at, resolve_zone


class Schedule:
    """An expression together with the zone whose clocks it is read on.

    Args:
        expression: five fields or a macro.
        zone: see :func:`cronwise.resolve_zone`.

    Raises:
        CronError: if either is malformed.
    """

    def __init__(self, expression: str | CronExpression, zone: str | dt.tzinfo = "UTC") -> None:
        if isinstance(expression, str):
            expression = CronExpression.parse(expression)
        self.expression = expression
        self.zone = resolve_zone(zone)

    def next_after(self, moment: dt.datetime) -> dt.datetime:
        """The first run later than ``moment``, in the zone of the schedule.

        Raises:
            CronError: if ``moment`` is naive.
            NeverRunsError: if the expression never runs.
        """
        start = _whole_minute(_in_utc(moment)) + MINUTE
        while True:
            found = self._first_until_transition(start)
            local = found.astimezone(self.zone)
            if self.expression.follows_clock or not local.fold:
                return local
            start = found + MINUTE

    def upcoming(self, moment: dt.datetime, count: int) -> list[dt.datetime]:
        """The next ``count`` runs later than ``moment``."""
        return list(islice(self._runs(moment), count))

    def between(
        self, start: dt.datetime, end: dt.datetime, *, limit: int = 1000
    ) -> list[dt.datetime]:
        """The runs later than ``start`` and before ``end``, the first ``limit`` of them at most."""
        found: list[dt.datetime] = []
        last = _in_utc(end)
        for run in islice(self._runs(start), limit):
            if run.astimezone(dt.UTC) >= last:
                break
            found.append(run)
        return found

    def _runs(self, moment: dt.datetime) -> Iterator[dt.datetime]:
        while True:
            moment = self.next_after(moment)
            yield moment

    def _first_until_transition(self, start: dt.datetime) -> dt.datetime:
        """The first run at or after ``start``, an instant in UTC.

        Between two transitions the clock is a plain shift of UTC, so each such stretch is searched
        in its own offset.
        """
        while True:
            offset = offset_at(start, self.zone)
            reading = self.expression.first_from(start.replace(tzinfo=None) + offset)
            found = (reading - offset).replace(tzinfo=dt.UTC)
            if offset_at(found, self.zone) == offset:
                return found
            transition = next_transition(start, found, self.zone)
            resumed = transition.replace(tzinfo=None) + offset_at(transition, self.zone)
            if reading < resumed and not self.expression.follows_clock:
                return transition
            start = transition


def _in_utc(moment: dt.datetime) -> dt.datetime:
    if moment.tzinfo is None:
        raise CronError(f"expected a time with a zone, got {moment.isoformat()}")
    return moment.astimezone(dt.UTC)


def _whole_minute(moment: dt.datetime) -> dt.datetime:
    return moment.replace(second=0, microsecond=0)
