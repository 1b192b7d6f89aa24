import datetime as dt

import pytest

import crate


def zone(hours, minutes=0):
    return dt.timezone(dt.timedelta(hours=hours, minutes=minutes))


class SummerTime(dt.tzinfo):
    """An hour ahead of UTC, two hours in the months of summer."""

    def utcoffset(self, when):
        return dt.timedelta(hours=2 if 4 <= when.month <= 9 else 1)

    def dst(self, when):
        return self.utcoffset(when) - dt.timedelta(hours=1)


@pytest.fixture
def kept(tmp_path):
    def keep(value):
        path = tmp_path / "a.crate"
        with crate.create(path) as writer:
            writer.add("value", value)
        return crate.load(path)["value"]

    return keep


@pytest.mark.parametrize(
    ("tzinfo", "expected"),
    [
        (zone(2), "2024-07-09T20:35:00.000250+00:00"),
        (zone(-5), "2024-07-10T03:35:00.000250+00:00"),
        (zone(5, 45), "2024-07-09T16:50:00.000250+00:00"),
        (zone(-3, -30), "2024-07-10T02:05:00.000250+00:00"),
        (SummerTime(), "2024-07-09T20:35:00.000250+00:00"),
    ],
    ids=["east", "west", "quarters", "halves", "summer"],
)
def test_moments_in_other_zones(kept, tzinfo, expected):
    moment = dt.datetime(2024, 7, 9, 22, 35, 0, 250, tzinfo=tzinfo)
    found = kept(moment)
    assert found.isoformat() == expected
    assert found == moment


def test_moments_around_1970(kept):
    moments = [
        dt.datetime(1970, 1, 1, 0, 30, tzinfo=zone(1)),
        dt.datetime(1969, 12, 31, 23, 30, tzinfo=zone(-1)),
        dt.datetime(1901, 6, 1, tzinfo=zone(9)),
    ]
    assert kept(moments) == moments


def test_the_same_moment_on_many_clocks(kept):
    moment = dt.datetime(2030, 1, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)
    found = kept([moment.astimezone(zone(hours)) for hours in range(-12, 15)])
    assert {other.isoformat() for other in found} == {"2030-01-31T23:59:59.999999+00:00"}


def test_differences_stay(kept):
    before = dt.datetime(2024, 3, 30, 12, tzinfo=SummerTime())
    after = dt.datetime(2024, 4, 2, 12, tzinfo=SummerTime())
    found = kept({"before": before, "after": after})
    assert found["after"] - found["before"] == dt.timedelta(hours=71)


def test_moments_in_utc(kept):
    begin = dt.datetime(1969, 12, 31, 23, 59, 59, 999_990, tzinfo=dt.UTC)
    moments = [begin + dt.timedelta(microseconds=number) for number in range(20)]
    assert kept(moments) == moments


def test_first_and_last_moment(kept):
    moments = [moment.replace(tzinfo=dt.UTC) for moment in (dt.datetime.min, dt.datetime.max)]
    assert kept(moments) == moments
