import datetime as dt
import io

import pytest

from cronwise import CronExpression, NeverRunsError, Schedule
from cronwise.__main__ import main

START = dt.datetime(2024, 4, 30, 23, 59, tzinfo=dt.UTC)
YEAR = [dt.date(2023, 12, 31) + dt.timedelta(days=number) for number in range(1, 367)]


def days(expression, count):
    return [f"{run:%m-%d}" for run in Schedule(expression).upcoming(START, count)]


def days_of_2024(expression):
    parsed = CronExpression.parse(expression)
    return [date for date in YEAR if parsed.matches_date(date)]


@pytest.mark.parametrize("weekday", range(7))
def test_one_day_of_the_week(weekday):
    expected = [date for date in YEAR if date.isoweekday() % 7 == weekday]
    assert days_of_2024(f"0 8 * * {weekday}") == expected


@pytest.mark.parametrize("day", [1, 15, 29, 31])
def test_one_day_of_the_month(day):
    assert days_of_2024(f"0 8 {day} * *") == [date for date in YEAR if date.day == day]


def test_working_days_and_weekends_share_no_day():
    assert days("0 9 * * 1-5", 8) == [f"05-{day:02}" for day in (1, 2, 3, 6, 7, 8, 9, 10)]
    assert days("0 9 * * SAT,SUN", 4) == ["05-04", "05-05", "05-11", "05-12"]
    assert days("0 9 * * 6-7", 4) == days("0 9 * * SAT,SUN", 4)


def test_days_of_the_month_in_a_list_and_a_range():
    assert days("0 9 10,20 * *", 3) == ["05-10", "05-20", "06-10"]
    assert days("0 9 28-30 2 *", 2) == ["02-28", "02-28"]


def test_macros_run_as_often_as_they_say():
    assert days("@weekly", 3) == ["05-05", "05-12", "05-19"]
    assert days("@monthly", 3) == ["05-01", "06-01", "07-01"]
    runs = Schedule("@yearly").upcoming(START, 3)
    assert [run.date() for run in runs] == [dt.date(2024 + n, 1, 1) for n in (1, 2, 3)]


def test_a_stepped_star_narrows_the_other_day_field_down():
    fridays = [date for date in YEAR if date.isoweekday() == 5 and date.day % 2 == 1]
    assert days_of_2024("0 0 */2 * FRI") == fridays
    thirteenths = [date for date in YEAR if date.day == 13 and date.isoweekday() % 7 % 3 == 0]
    assert days_of_2024("0 0 13 * */3") == thirteenths
    odd = [date for date in YEAR if date.day % 2 == 1]
    assert days_of_2024("0 0 */2 * *") == odd
    assert days_of_2024("0 0 * * */6") == [date for date in YEAR if date.isoweekday() >= 6]


@pytest.mark.parametrize(
    "expression",
    ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30,31 FEB */2"],
    ids=["february", "short-months", "stepped-weekday"],
)
def test_a_day_that_no_month_has(expression):
    with pytest.raises(NeverRunsError):
        Schedule(expression).next_after(START)


def test_between_counts_the_working_days():
    end = START + dt.timedelta(days=31)
    assert len(Schedule("0 9 * * MON-FRI").between(START, end)) == 23
    assert len(Schedule("0 9 1,15 * *").between(START, end)) == 2


def test_the_command_line_skips_the_weekend():
    stream = io.StringIO()
    arguments = ["0 9 * * 1-5", "--after", "2024-05-10T12:00", "--count", "1"]
    assert main(arguments, stream) == 0
    assert stream.getvalue() == "2024-05-13T09:00:00+00:00\n"


def test_two_restricted_day_fields_add_up():
    both = [date for date in YEAR if date.isoweekday() == 5 or date.day == 13]
    assert days_of_2024("0 0 13 * FRI") == both
    assert days_of_2024("0 0 13 5 5") == [date for date in both if date.month == 5]
    assert days("0 0 1-2 * 0", 4) == ["05-01", "05-02", "05-05", "05-12"]


def test_two_stars_are_every_day():
    assert days_of_2024("0 0 * * *") == YEAR
    assert days("@daily", 3) == ["05-01", "05-02", "05-03"]
