import datetime as dt

import pytest

from stockroom import Inventory, ListError, read_list

HEADER = "item,quantity,unit,date,counted\n"


def save(folder, text):
    path = folder / "list.csv"
    path.write_text(HEADER + text, encoding="utf-8")
    return path


def there(folder, text, code="a"):
    inventory = Inventory()
    inventory.add(read_list(save(folder, text)))
    return str(inventory[code].quantity)


def test_dates_and_countings_are_read(tmp_path):
    delivered, counted = read_list(save(tmp_path, "a,1,kg,2024-05-31,\na,2,kg,2024-06-01,Yes\n"))
    assert (delivered.day, delivered.counted) == (dt.date(2024, 5, 31), False)
    assert (counted.day, counted.counted) == (dt.date(2024, 6, 1), True)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,1,kg,31.5.2024,", "list.csv, row 2: '31.5.2024' is not a date"),
        ("a,1,kg,2024-02-30,", "row 2: '2024-02-30' is not a date"),
        ("a,1,kg,,yes", "row 2: what was counted needs a date"),
    ],
    ids=["format", "day", "none"],
)
def test_bad_dates_are_refused(tmp_path, row, message):
    with pytest.raises(ListError, match=message):
        read_list(save(tmp_path, row + "\n"))


def test_deliveries_are_added_to_what_was_counted(tmp_path):
    text = "a,5,kg,,\na,7,kg,2024-05-30,\na,4000,g,2024-05-31,yes\na,1,kg,2024-06-01,\n"
    assert there(tmp_path, text) == "5 kg"


def test_the_rows_of_a_list_may_come_in_any_order(tmp_path):
    text = "a,1,kg,2024-06-01,\na,4,kg,2024-05-31,yes\na,7,kg,2024-05-31,\na,3,kg,,\n"
    assert there(tmp_path, text) == "5 kg"


def test_the_last_counting_counts(tmp_path):
    text = "a,4,kg,2024-05-31,yes\na,7,kg,2024-06-01,\na,6,kg,2024-06-30,yes\n"
    assert there(tmp_path, text) == "6 kg"


def test_each_item_is_counted_for_itself(tmp_path):
    text = "a,4,kg,2024-05-31,yes\nb,7,kg,2024-05-30,\n"
    assert (there(tmp_path, text), there(tmp_path, text, "b")) == ("4 kg", "7 kg")
