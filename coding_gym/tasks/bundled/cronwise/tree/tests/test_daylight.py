import datetime as dt

from cronwise import Schedule, SeasonalZone

# The clocks go from 02:00 to 03:00 on 31 March and from 03:00 to 02:00 on 27 October.
MIDLAND = SeasonalZone(
    "Midland",
    dt.timedelta(hours=1),
    [(dt.datetime(2024, 3, 31, 1), dt.datetime(2024, 10, 27, 1))],
)


def runs(expression, after, count):
    """Runs after a local time, as ``day hour:minute+offset``."""
    moment = dt.datetime.fromisoformat(after).astimezone(dt.UTC)
    found = Schedule(expression, MIDLAND).upcoming(moment, count)
    return [run.strftime("%d %H:%M%z")[:-2] for run in found]


def test_the_zone_knows_its_seasons():
    assert dt.datetime(2024, 1, 1, tzinfo=MIDLAND).utcoffset() == dt.timedelta(hours=1)
    assert dt.datetime(2024, 7, 1, tzinfo=MIDLAND).utcoffset() == dt.timedelta(hours=2)
    assert dt.datetime(2024, 10, 27, 2, 30, tzinfo=MIDLAND).dst() == dt.timedelta(hours=1)
    assert dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=MIDLAND).dst() == dt.timedelta(0)


def test_the_zone_tells_the_two_passes_apart():
    first = dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC).astimezone(MIDLAND)
    second = dt.datetime(2024, 10, 27, 1, 30, tzinfo=dt.UTC).astimezone(MIDLAND)
    assert (first.hour, first.fold) == (2, 0)
    assert (second.hour, second.fold) == (2, 1)


def test_a_daily_job_keeps_its_time_through_the_year():
    assert runs("0 9 1 * *", "2024-03-01T09:00+01:00", 2) == ["01 09:00+02", "01 09:00+02"]
    assert runs("0 9 1 * *", "2024-10-01T09:00+02:00", 1) == ["01 09:00+01"]


def test_a_skipped_time_runs_after_the_skip():
    assert runs("30 2 * * *", "2024-03-30T03:00+01:00", 2) == ["31 03:00+02", "01 02:30+02"]


def test_regular_jobs_do_not_make_up_for_skipped_readings():
    assert runs("15 * * * *", "2024-03-31T01:00+01:00", 2) == ["31 01:15+01", "31 03:15+02"]


def test_a_job_at_a_repeated_time_runs_once():
    assert runs("30 2 * * *", "2024-10-26T03:00+02:00", 2) == ["27 02:30+02", "28 02:30+01"]


def test_regular_jobs_run_in_both_passes():
    assert runs("30 * * * *", "2024-10-27T01:00+02:00", 4) == [
        "27 01:30+02",
        "27 02:30+02",
        "27 02:30+01",
        "27 03:30+01",
    ]
