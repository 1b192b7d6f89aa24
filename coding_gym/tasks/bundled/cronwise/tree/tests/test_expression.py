import datetime as dt

import pytest

from cronwise import CronError, CronExpression, NeverRunsError


def weekdays(text):
    return sorted(CronExpression.parse(f"0 0 * * {text}").weekdays)


def test_lists_ranges_and_steps():
    expression = CronExpression.parse("0,30 9-17/4 1,10-12 */6 *")
    assert sorted(expression.minutes) == [0, 30]
    assert sorted(expression.hours) == [9, 13, 17]
    assert sorted(expression.days) == [1, 10, 11, 12]
    assert sorted(expression.months) == [1, 7]


def test_a_step_after_a_value_counts_to_the_end():
    assert sorted(CronExpression.parse("5/20 * * * *").minutes) == [5, 25, 45]


def test_names_in_any_case():
    expression = CronExpression.parse("0 0 * jan,DEC Mon-Fri")
    assert sorted(expression.months) == [1, 12]
    assert sorted(expression.weekdays) == [1, 2, 3, 4, 5]


def test_sunday_is_zero_seven_or_a_name():
    assert weekdays("0") == weekdays("7") == weekdays("SUN") == [0]
    assert weekdays("3,7") == [0, 3]


def test_a_range_may_end_on_sunday():
    assert weekdays("5-7") == [0, 5, 6]


def test_every_second_day_of_the_week():
    assert weekdays("*/2") == [0, 2, 4, 6]


def test_macros():
    assert CronExpression.parse("@weekly").weekdays == {0}
    assert CronExpression.parse("@Hourly").hours == frozenset(range(24))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("* * * *", id="four-fields"),
        pytest.param("60 * * * *", id="minute"),
        pytest.param("* 24 * * *", id="hour"),
        pytest.param("* * 0 * *", id="day"),
        pytest.param("* * * 13 *", id="month"),
        pytest.param("* * * * 8", id="weekday"),
        pytest.param("* * * * 4-2", id="backwards"),
        pytest.param("*/0 * * * *", id="zero-step"),
        pytest.param("1- * * * *", id="open-range"),
        pytest.param("a * * * *", id="letter"),
        pytest.param("1,,2 * * * *", id="empty-part"),
        pytest.param("@never", id="macro"),
    ],
)
def test_refuses_malformed_expressions(text):
    with pytest.raises(CronError):
        CronExpression.parse(text)


def test_either_day_field_is_enough_when_both_are_restricted():
    expression = CronExpression.parse("0 0 13 * FRI")
    assert expression.matches_date(dt.date(2024, 5, 13))
    assert expression.matches_date(dt.date(2024, 5, 10))
    assert not expression.matches_date(dt.date(2024, 5, 14))


def test_both_day_fields_count_when_one_is_a_star():
    expression = CronExpression.parse("0 0 */2 * FRI")
    assert expression.matches_date(dt.date(2024, 5, 3))
    assert not expression.matches_date(dt.date(2024, 5, 10))
    assert not expression.matches_date(dt.date(2024, 5, 5))


def test_the_first_reading_may_be_the_given_one():
    expression = CronExpression.parse("15 10 * * *")
    reading = dt.datetime(2024, 5, 10, 10, 15)
    assert expression.first_from(reading) == reading
    later = reading + dt.timedelta(minutes=1)
    assert expression.first_from(later) == reading + dt.timedelta(days=1)


def test_finds_leap_days():
    expression = CronExpression.parse("0 12 29 FEB *")
    assert expression.first_from(dt.datetime(2025, 1, 1)) == dt.datetime(2028, 2, 29, 12)


def test_knows_when_it_never_runs():
    with pytest.raises(NeverRunsError, match="no day matches"):
        CronExpression.parse("0 0 30 2 *").first_from(dt.datetime(2024, 1, 1))
