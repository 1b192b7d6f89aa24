import itertools

import pytest

from stockroom import Inventory, StockroomError, read_list
from stockroom.__main__ import main

HEADER = "item,quantity,unit,name,minimum,date,counted\n"


def save(folder, text, name="list.csv"):
    path = folder / name
    path.write_text(HEADER + text.replace(";", "\n"), encoding="utf-8")
    return path


def stock(folder, *lists):
    inventory = Inventory()
    for text in lists:
        inventory.add(read_list(save(folder, text)))
    return inventory


def there(folder, *lists):
    return str(stock(folder, *lists)["a"].quantity)


OLD = "a,1,kg,,,,"
BEFORE = "a,5,kg,,,2025-06-12,"
SAME_DAY = "a,7,kg,,,2025-06-30,"
COUNTED = "a,10,kg,,,2025-06-30,yes"
AFTER = "a,20,kg,,,2025-07-03,"
LATER = "a,-500,g,,,2025-08-01,"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((COUNTED, AFTER), "30 kg"),
        ((COUNTED, BEFORE), "10 kg"),
        ((COUNTED, SAME_DAY), "10 kg"),
        ((COUNTED, OLD), "10 kg"),
        ((BEFORE, COUNTED, AFTER), "30 kg"),
        ((OLD, SAME_DAY, AFTER, COUNTED, LATER), "29.5 kg"),
        ((OLD, BEFORE, AFTER, LATER), "25.5 kg"),
    ],
    ids=["after", "before", "same-day", "old", "both", "all", "not-counted"],
)
def test_lists_may_come_in_any_order(tmp_path, rows, expected):
    for lists in itertools.permutations(rows):
        assert (lists, there(tmp_path, *lists)) == (lists, expected)


def test_several_stocktakings(tmp_path):
    rows = ["a,3,kg,,,2025-03-31,yes", "a,4,kg,,,2025-05-01,", COUNTED, AFTER, BEFORE]
    for lists in itertools.permutations(rows):
        assert (lists, there(tmp_path, *lists)) == (lists, "30 kg")


def test_of_two_stocktakings_of_a_day_the_one_that_is_read_later_counts(tmp_path):
    again = "a,11,kg,,,2025-06-30,yes"
    assert there(tmp_path, COUNTED, AFTER, again) == "31 kg"
    assert there(tmp_path, again, COUNTED, AFTER) == "30 kg"
    assert there(tmp_path, f"{again};{COUNTED};{AFTER}") == "30 kg"


def test_nothing_may_be_what_was_counted(tmp_path):
    empty = "a,0,kg,,,2025-06-30,yes"
    assert there(tmp_path, empty, BEFORE) == "0 kg"
    assert there(tmp_path, AFTER, empty, BEFORE) == "20 kg"


def test_the_stock_is_right_in_between(tmp_path):
    inventory = Inventory()
    seen = []
    for text in (AFTER, OLD, COUNTED, LATER, "a,1,kg,,,2025-08-31,yes", BEFORE):
        inventory.add(read_list(save(tmp_path, text)))
        seen.append(str(inventory["A"].quantity))
    assert seen == ["20 kg", "21 kg", "30 kg", "29.5 kg", "1 kg", "1 kg"]


def test_items_are_counted_one_by_one(tmp_path):
    inventory = stock(tmp_path, f"b,2,m,,,2025-07-01,;{COUNTED}", "B,9,m,,,2025-06-01,;" + AFTER)
    assert [f"{item.code} {item.quantity}" for item in inventory] == ["A 30 kg", "B 11 m"]
    assert len(inventory) == 2


def test_names_and_minimums_are_those_that_were_given_last(tmp_path):
    first = "a,20,kg,New,40,2025-07-03,;a,5,kg,Old,35,2025-06-12,"
    inventory = stock(tmp_path, first, COUNTED)
    assert (inventory["a"].name, str(inventory["a"].minimum)) == ("Old", "35 kg")
    assert inventory["a"].is_low
    inventory.add(read_list(save(tmp_path, "a,5,kg,Fine,,2025-01-01,")))
    assert (inventory["a"].name, str(inventory["a"].minimum)) == ("Fine", "35 kg")


@pytest.mark.parametrize(
    "other", ["a,1,l,,,2025-01-01,", "a,1,l,,,2025-12-31,yes"], ids=["old", "counted"]
)
def test_kinds_of_units_do_not_mix_even_if_they_do_not_count(tmp_path, other):
    with pytest.raises(StockroomError, match="A: kg and l do not go together"):
        stock(tmp_path, COUNTED, other)


@pytest.mark.parametrize("turned", [False, True])
def test_the_command_line(tmp_path, capsys, turned):
    paths = [
        save(tmp_path, COUNTED, "count.csv"),
        save(tmp_path, f"{BEFORE};a,20,kg,,40,2025-07-03,", "mill.csv"),
    ]
    assert main([str(path) for path in (reversed(paths) if turned else paths)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "item  quantity  minimum",
        "A     30 kg     40 kg    low",
    ]
