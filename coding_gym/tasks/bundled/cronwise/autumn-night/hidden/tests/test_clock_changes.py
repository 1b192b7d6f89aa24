import datetime as dt

from cronwise import Schedule, SeasonalZone

# 27 October 2024: after 02:59+02 comes 02:00+01.
MIDLAND = SeasonalZone(
    "Midland",
    dt.timedelta(hours=1),
    [(dt.datetime(2024, 3, 31, 1), dt.datetime(2024, 10, 27, 1))],
)
# 7 April 2024: after 01:59+11:00 comes 01:30+10:30.
ATOLL = SeasonalZone(
    "Atoll",
    dt.timedelta(hours=10, minutes=30),
    [
        (dt.datetime(2023, 9, 30, 15, 30), dt.datetime(2024, 4, 6, 15)),
        (dt.datetime(2024, 10, 5, 15, 30), dt.datetime(2025, 4, 5, 15)),
    ],
    shift=dt.timedelta(minutes=30),
)


def instant(text):
    return dt.datetime.fromisoformat(text).astimezone(dt.UTC)


def shown(found):
    return [run.strftime("%d %H:%M%z")[:-2] for run in found]


def upcoming(expression, after, count):
    return shown(Schedule(expression, MIDLAND).upcoming(instant(after), count))


def test_a_half_hourly_job_runs_at_every_real_half_hour():
    assert upcoming("*/30 * * * *", "2024-10-27T01:30+02:00", 6) == [
        "27 02:00+02",
        "27 02:30+02",
        "27 02:00+01",
        "27 02:30+01",
        "27 03:00+01",
        "27 03:30+01",
    ]


def test_every_run_is_later_than_the_moment_asked_about():
    for expression in ("*/20 * * * *", "5 * * * *", "30 2 * * *"):
        schedule = Schedule(expression, MIDLAND)
        for minutes in range(0, 300, 10):
            moment = instant("2024-10-27T00:00+02:00") + dt.timedelta(minutes=minutes)
            assert schedule.next_after(moment).astimezone(dt.UTC) > moment


def test_the_second_pass_does_not_lead_back_into_the_first():
    assert upcoming("30 2 * * *", "2024-10-27T02:10+01:00", 1) == ["28 02:30+01"]
    assert upcoming("30 * * * *", "2024-10-27T02:10:45+01:00", 2) == ["27 02:30+01", "27 03:30+01"]


def test_runs_can_be_asked_for_with_a_local_moment():
    moment = dt.datetime(2024, 10, 27, 2, 45, fold=1, tzinfo=MIDLAND)
    assert shown([Schedule("*/30 * * * *", MIDLAND).next_after(moment)]) == ["27 03:00+01"]


def test_between_counts_25_hours_on_the_long_day():
    start, end = instant("2024-10-26T23:59+02:00"), instant("2024-10-28T00:00+01:00")
    found = Schedule("@hourly", MIDLAND).between(start, end)
    assert shown(found)[:5] == [
        "27 00:00+02",
        "27 01:00+02",
        "27 02:00+02",
        "27 02:00+01",
        "27 03:00+01",
    ]
    assert len(found) == 25


def test_between_may_end_in_the_second_pass():
    start, end = instant("2024-10-27T01:45+02:00"), instant("2024-10-27T02:10+01:00")
    found = Schedule("*/30 * * * *", MIDLAND).between(start, end)
    assert shown(found) == ["27 02:00+02", "27 02:30+02", "27 02:00+01"]


def test_between_may_end_in_the_first_pass():
    start, end = instant("2024-10-27T01:45+02:00"), instant("2024-10-27T02:30+02:00")
    assert shown(Schedule("*/15 * * * *", MIDLAND).between(start, end)) == [
        "27 02:00+02",
        "27 02:15+02",
    ]


def test_clocks_may_change_by_half_an_hour():
    schedule = Schedule("*/15 * * * *", ATOLL)
    found = schedule.upcoming(instant("2024-04-07T01:30+11:00"), 5)
    assert [run.strftime("%H:%M%z") for run in found] == [
        "01:45+1100",
        "01:30+1030",
        "01:45+1030",
        "02:00+1030",
        "02:15+1030",
    ]


def test_a_repeated_time_runs_once_in_the_first_pass():
    assert upcoming("10,50 2 * * *", "2024-10-27T00:00+02:00", 3) == [
        "27 02:10+02",
        "27 02:50+02",
        "28 02:10+01",
    ]


def test_a_skipped_time_runs_once_after_the_skip():
    assert upcoming("10,50 2 * * *", "2024-03-31T00:00+01:00", 2) == ["31 03:00+02", "01 02:10+02"]
    schedule = Schedule("45 1 * * *", MIDLAND)
    found = schedule.upcoming(instant("2024-03-31T00:00+01:00"), 1)
    assert shown(found) == ["31 01:45+01"]


def test_between_counts_23_hours_on_the_short_day():
    start, end = instant("2024-03-30T23:59+01:00"), instant("2024-04-01T00:00+02:00")
    found = Schedule("@hourly", MIDLAND).between(start, end)
    assert len(found) == 23
    assert {run.tzinfo for run in found} == {MIDLAND}


def test_seasons_that_span_the_new_year():
    schedule = Schedule("0 12 1 * *", ATOLL)
    found = schedule.between(instant("2024-01-15T00:00+00:00"), instant("2025-01-15T00:00+00:00"))
    offsets = [run.strftime("%z") for run in found]
    assert offsets == ["+1100"] * 3 + ["+1030"] * 6 + ["+1100"] * 3
