import datetime as dt
import io

import pytest

from cronwise import Schedule
from cronwise.__main__ import main


def printed(expression, zone, after, count=1):
    stream = io.StringIO()
    arguments = [expression, f"--zone={zone}", "--after", after, "--count", str(count)]
    assert main(arguments, stream) == 0
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    "zone",
    ["+01:00", "+05:45", "+14:00", "-00:30", "-04:00", "-11:00"],
    ids=["east-1", "east-5", "east-14", "west-0", "west-4", "west-11"],
)
def test_a_run_comes_after_the_minute_before_it(zone):
    assert printed("30 12 * * *", zone, "2024-05-10T12:29") == [f"2024-05-10T12:30:00{zone}"]
    assert printed("30 12 * * *", zone, "2024-05-10T12:30") == [f"2024-05-11T12:30:00{zone}"]


def test_a_morning_run_in_the_east_is_still_to_come():
    assert printed("0 9 * * *", "+05:45", "2024-05-10T08:00", 2) == [
        "2024-05-10T09:00:00+05:45",
        "2024-05-11T09:00:00+05:45",
    ]


def test_a_morning_run_in_the_west_is_over():
    assert printed("0 9 * * *", "-04:00", "2024-05-10T10:00") == ["2024-05-11T09:00:00-04:00"]


def test_a_day_begins_at_midnight_in_the_zone():
    assert printed("0 6 * * *", "+10:00", "2024-05-10") == ["2024-05-10T06:00:00+10:00"]
    assert printed("0 22 * * *", "-10:00", "2024-05-10", 2) == [
        "2024-05-10T22:00:00-10:00",
        "2024-05-11T22:00:00-10:00",
    ]


def test_months_and_years_begin_in_the_zone():
    assert printed("@monthly", "-08:00", "2024-05-01T00:00") == ["2024-06-01T00:00:00-08:00"]
    assert printed("@yearly", "+09:00", "2023-12-31T23:59") == ["2024-01-01T00:00:00+09:00"]


def test_the_command_line_agrees_with_the_schedule():
    zone = dt.timezone(dt.timedelta(hours=7))
    expected = Schedule("*/20 * * * *", zone).upcoming(
        dt.datetime(2024, 2, 29, 23, 5, tzinfo=zone), 30
    )
    found = printed("*/20 * * * *", "+07:00", "2024-02-29T23:05", 30)
    assert found == [run.isoformat() for run in expected]


@pytest.mark.parametrize("zone", ["UTC", "+05:30", "-04:00"], ids=["utc", "east", "west"])
@pytest.mark.parametrize(
    "after", ["2024-05-10T08:00Z", "2024-05-10T14:30+06:30"], ids=["from-utc", "from-east"]
)
def test_a_time_with_an_offset_is_that_instant(zone, after):
    (run,) = printed("*/30 * * * *", zone, after)
    assert dt.datetime.fromisoformat(run) == dt.datetime(2024, 5, 10, 8, 30, tzinfo=dt.UTC)


def test_the_default_zone_is_utc():
    stream = io.StringIO()
    assert main(["0 9 * * *", "--after", "2024-05-10T08:00", "--count", "1"], stream) == 0
    assert stream.getvalue() == "2024-05-10T09:00:00+00:00\n"
