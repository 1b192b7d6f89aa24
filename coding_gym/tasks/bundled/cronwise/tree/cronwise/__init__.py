"""Cron expressions and their run times."""

from cronwise.errors import CronError, NeverRunsError
from cronwise.expression import CronExpression
from cronwise.schedule import Schedule
from cronwise.zones import SeasonalZone, resolve_zone

__all__ = [
    "CronError",
    "CronExpression",
    "NeverRunsError",
    "Schedule",
    "SeasonalZone",
    "resolve_zone",
]
