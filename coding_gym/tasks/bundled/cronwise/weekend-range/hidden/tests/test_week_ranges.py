import datetime as dt

import pytest

from cronwise import CronError, CronExpression, Schedule


def weekdays(text):
    return sorted(CronExpression.parse(f"0 0 * * {text}").weekdays)


def test_ranges_by_number_end_on_sunday():
    assert weekdays("6-7") == [0, 6]
    assert weekdays("4-7") == [0, 4, 5, 6]


def test_ranges_by_name_end_on_sunday():
    assert weekdays("FRI-SUN") == [0, 5, 6]
    assert weekdays("sat-sun") == [0, 6]


def test_the_whole_week_may_be_written_as_a_range():
    assert weekdays("1-7") == weekdays("0-7") == weekdays("MON-SUN") == [0, 1, 2, 3, 4, 5, 6]


def test_steps_reach_sunday_at_the_end_of_a_range():
    assert weekdays("1-7/2") == [0, 1, 3, 5]
    assert weekdays("MON-SUN/3") == [0, 1, 4]
    assert weekdays("5-7/3") == [5]


def test_such_a_range_may_be_part_of_a_list():
    assert weekdays("2,6-7") == [0, 2, 6]


def test_the_schedule_runs_on_the_whole_weekend():
    friday = dt.datetime(2024, 5, 10, 12, tzinfo=dt.UTC)
    found = Schedule("0 10 * * SAT-SUN").upcoming(friday, 4)
    assert [run.day for run in found] == [11, 12, 18, 19]


def test_sunday_alone_stays_one_day():
    assert weekdays("7") == weekdays("0") == weekdays("7-7") == weekdays("SUN-SUN") == [0]


def test_sunday_still_begins_a_range():
    assert weekdays("0-2") == weekdays("SUN-TUE") == [0, 1, 2]


def test_a_star_still_ends_on_saturday():
    assert weekdays("*/3") == [0, 3, 6]
    assert weekdays("2/5") == [2]


def test_other_fields_have_no_second_name_for_their_first_value():
    for text in ("50-60 * * * *", "0 20-24 * * *", "0 0 * 10-13 *", "0 0 25-32 * *"):
        with pytest.raises(CronError):
            CronExpression.parse(text)


def test_ranges_that_run_backwards_are_still_refused():
    for text in ("4-2", "SAT-MON", "5-8"):
        with pytest.raises(CronError):
            weekdays(text)
