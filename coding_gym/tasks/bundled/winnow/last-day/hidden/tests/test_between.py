import datetime as dt

from winnow import Query


def kept(condition, values, **parameters):
    records = [{"v": value} for value in values]
    return [r["v"] for r in Query(f"where {condition}").run(records, **parameters)]


def test_both_ends_belong_to_a_range_of_numbers():
    assert kept("v between 2 and 5", range(8)) == [2, 3, 4, 5]
    assert kept("v between -1 and 0.5", [-1.5, -1, 0, 0.5, 0.75]) == [-1, 0, 0.5]


def test_both_ends_belong_to_a_range_of_days():
    days = [dt.date(2024, 7, day) for day in range(29, 32)] + [dt.date(2024, 8, 1)]
    low, high = dt.date(2024, 7, 30), dt.date(2024, 7, 31)
    assert kept("v between :low and :high", days, low=low, high=high) == days[1:3]


def test_both_ends_belong_to_a_range_of_texts():
    assert kept("v between 'b' and 'd'", ["a", "b", "c", "d", "da"]) == ["b", "c", "d"]


def test_a_range_may_be_a_single_value():
    assert kept("v between 3 and 3", [2, 3, 4]) == [3]
    assert kept("v between v and v", [2, "x", None]) == [2, "x"]


def test_what_is_not_between():
    assert kept("v not between 2 and 4", range(7)) == [0, 1, 5, 6]
    assert kept("not v between 2 and 4 and v < 6", range(7)) == [0, 1, 5]


def test_ranges_of_other_fields():
    records = [{"v": 4, "low": 1, "high": 4}, {"v": 4, "low": 1, "high": 3}]
    assert list(Query("where v between low and high").run(records)) == records[:1]


def test_ranges_whose_ends_are_exchanged_are_empty():
    assert kept("v between 5 and 2", range(8)) == []


def test_other_kinds_are_not_between():
    assert kept("v between 1 and 3", ["2", True, None, [2]]) == []
