import datetime as dt

import pytest

import crate

UTC = dt.UTC


@pytest.fixture
def kept(tmp_path):
    """Gives what comes back of a value."""

    def keep(value):
        path = tmp_path / "a.crate"
        with crate.create(path) as writer:
            writer.add("value", value)
        return crate.load(path)["value"]

    return keep


def test_plain_values(kept):
    for value in (None, True, False, 0, 1, -1, 63, -64, 100_000, -(10**30), 0.5, -1e300, "", b""):
        found = kept(value)
        assert (type(found), found) == (type(value), value)


def test_texts_and_bytes(kept):
    values = ["plain", "blåbærsyltetøy", "漢字", "a\0b\n", b"\x00\xff" * 10, "long " * 100]
    assert kept(values) == values


def test_nested_values(kept):
    value = {"list": [1, [2.5, {"deep": None}], []], "": {}, "more": {"list": [True]}}
    assert kept(value) == value
    assert kept((1, (2, 3))) == [1, [2, 3]]


def test_moments_come_back_to_the_microsecond(kept):
    moments = [
        dt.datetime(2024, 3, 1, 12, 30, 0, 123_457, tzinfo=UTC),
        dt.datetime(1970, 1, 1, tzinfo=UTC),
        dt.datetime(1815, 12, 10, 9, 0, 0, 1, tzinfo=UTC),
    ]
    found = kept(moments)
    assert found == moments
    assert {moment.tzinfo for moment in found} == {UTC}


@pytest.mark.parametrize(
    "value",
    [object(), {1: "a"}, [1, {2}], dt.datetime(2024, 1, 1), dt.date(2024, 1, 1), "\ud800"],
    ids=["object", "key", "set", "naive", "date", "surrogate"],
)
def test_other_values_are_refused(kept, value):
    with pytest.raises(crate.ValueTypeError):
        kept(value)
