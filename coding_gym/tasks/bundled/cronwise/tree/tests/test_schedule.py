import datetime as dt
import io

import pytest

from cronwise import CronError, Schedule, resolve_zone
from cronwise.__main__ import main


def utc(text):
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def runs(expression, after, count, zone="UTC"):
    return [run.isoformat() for run in Schedule(expression, zone).upcoming(utc(after), count)]


def test_the_next_run_is_later_than_the_moment():
    assert runs("0 12 * * *", "2024-05-10T12:00", 1) == ["2024-05-11T12:00:00+00:00"]
    assert runs("0 12 * * *", "2024-05-10T11:59:59", 1) == ["2024-05-10T12:00:00+00:00"]


def test_runs_cross_hours_months_and_years():
    assert runs("*/40 23 31 12 *", "2024-12-31T23:05", 2) == [
        "2024-12-31T23:40:00+00:00",
        "2025-12-31T23:00:00+00:00",
    ]


def test_jobs_of_working_days_pause_at_the_weekend():
    assert runs("0 9 * * MON-FRI", "2024-05-10T12:00", 2) == [
        "2024-05-13T09:00:00+00:00",
        "2024-05-14T09:00:00+00:00",
    ]
    assert runs("0 9 * * 6", "2024-05-10T12:00", 1) == ["2024-05-11T09:00:00+00:00"]
    assert runs("@weekly", "2024-05-10T12:00", 1) == ["2024-05-12T00:00:00+00:00"]


def test_monthly_jobs_run_once_a_month():
    assert runs("30 6 1 * *", "2024-05-10T12:00", 2) == [
        "2024-06-01T06:30:00+00:00",
        "2024-07-01T06:30:00+00:00",
    ]
    assert runs("0 0 31 * *", "2024-05-31T12:00", 1) == ["2024-07-31T00:00:00+00:00"]


def test_the_expression_is_read_on_the_clocks_of_the_zone():
    assert runs("30 2 * * *", "2024-05-10T00:00", 1, "+05:30") == ["2024-05-11T02:30:00+05:30"]
    assert runs("30 2 * * *", "2024-05-10T00:00", 1, "-0300") == ["2024-05-10T02:30:00-03:00"]


def test_the_moment_may_be_in_any_zone():
    moment = dt.datetime(2024, 5, 10, 6, 0, tzinfo=dt.timezone(dt.timedelta(hours=6)))
    run = Schedule("0 1 * * *").next_after(moment)
    assert run.isoformat() == "2024-05-10T01:00:00+00:00"


def test_naive_moments_are_refused():
    with pytest.raises(CronError, match="with a zone"):
        Schedule("@daily").next_after(dt.datetime(2024, 5, 10))


def test_between_leaves_both_ends_out():
    found = Schedule("@hourly").between(utc("2024-05-10T08:00"), utc("2024-05-10T11:00"))
    assert [run.hour for run in found] == [9, 10]


def test_between_stops_at_its_limit():
    start, end = utc("2024-05-10T08:00"), utc("2024-05-11T08:00")
    found = Schedule("* * * * *").between(start, end, limit=3)
    assert [run.minute for run in found] == [1, 2, 3]


@pytest.mark.parametrize(
    "name",
    ["Nowhere/At_All", "+25:00", "../etc/passwd", ""],
    ids=["key", "offset", "path", "empty"],
)
def test_unknown_zones_are_refused(name):
    with pytest.raises(CronError):
        Schedule("@daily", name)


def test_zones_are_passed_through():
    assert resolve_zone(dt.UTC) is dt.UTC
    assert resolve_zone("utc") is dt.UTC


def test_the_command_line_prints_runs():
    stream = io.StringIO()
    arguments = ["0 9 * * 1", "--zone", "+02:00", "--after", "2024-05-10T12:00", "--count", "2"]
    assert main(arguments, stream) == 0
    assert stream.getvalue() == "2024-05-13T09:00:00+02:00\n2024-05-20T09:00:00+02:00\n"


def test_the_command_line_starts_from_a_time_in_the_zone():
    stream = io.StringIO()
    arguments = ["0 9 * * *", "--zone", "+05:30", "--after", "2024-05-10T08:00", "--count", "1"]
    assert main(arguments, stream) == 0
    assert stream.getvalue() == "2024-05-10T09:00:00+05:30\n"


def test_the_command_line_reports_errors(capsys):
    assert main(["0 9 * *"]) == 1
    assert "expected five fields" in capsys.readouterr().err
