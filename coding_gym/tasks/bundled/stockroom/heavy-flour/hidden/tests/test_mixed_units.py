from decimal import Decimal

import pytest

from stockroom import Inventory, read_list, render
from stockroom.__main__ import main
from stockroom.units import Quantity, parse_quantity

HEADER = "item,quantity,unit,minimum\n"


def save(folder, rows, name="list.csv"):
    path = folder / name
    path.write_text(HEADER + rows, encoding="utf-8")
    return path


def stock(folder, rows):
    inventory = Inventory()
    inventory.add(read_list(save(folder, rows)))
    return inventory


@pytest.mark.parametrize(
    ("number", "unit", "amount", "counted_in"),
    [
        ("1", "g", "0.001", "kg"),
        ("2500", "g", "2.5", "kg"),
        ("3", "t", "3000", "kg"),
        ("0,25", "t", "250", "kg"),
        ("750", "ml", "0.75", "l"),
        ("15000", "mL", "15", "l"),
        ("1", "mm", "0.001", "m"),
        ("12,5", "cm", "0.125", "m"),
        ("-80", " cm ", "-0.8", "m"),
    ],
    ids=["g", "many-g", "t", "part-t", "ml", "many-ml", "mm", "cm", "negative-cm"],
)
def test_small_and_large_units(number, unit, amount, counted_in):
    assert parse_quantity(number, unit) == Quantity(Decimal(amount), counted_in)


@pytest.mark.parametrize("unit", ["pcs", "kg", "l", "m"])
def test_units_that_are_counted_in(unit):
    assert parse_quantity("12,5", unit) == Quantity(Decimal("12.5"), unit)


@pytest.mark.parametrize(
    ("small", "large", "ratio"),
    [
        ("g", "kg", 1000),
        ("g", "t", 1_000_000),
        ("kg", "t", 1000),
        ("ml", "l", 1000),
        ("mm", "cm", 10),
        ("cm", "m", 100),
        ("mm", "m", 1000),
    ],
    ids=["g-kg", "g-t", "kg-t", "ml-l", "mm-cm", "cm-m", "mm-m"],
)
def test_so_many_small_ones_are_a_large_one(small, large, ratio):
    assert parse_quantity(str(7 * ratio), small) == parse_quantity("7", large)
    assert parse_quantity(str(7 * ratio - 1), small) < parse_quantity("7", large)


def test_a_list_in_all_units_of_a_kind(tmp_path):
    inventory = stock(tmp_path, "A,1,t,\na,20,kg,\nA,300,g,\nb,5,mm,\nB,5,cm,\nB,5,m,\n")
    assert str(inventory["a"].quantity) == "1 020.3 kg"
    assert str(inventory["b"].quantity) == "5.055 m"


def test_taking_out_in_a_smaller_unit(tmp_path):
    inventory = stock(tmp_path, "oil,2,l,\noil,-750,ml,\n")
    assert str(inventory["oil"].quantity) == "1.25 l"
    inventory.add(read_list(save(tmp_path, "oil,-1250,ml,\n")))
    assert inventory["oil"].quantity.amount == 0


@pytest.mark.parametrize(("grams", "low"), [("499", True), ("500", False), ("501", False)])
def test_a_minimum_in_another_unit(tmp_path, grams, low):
    inventory = stock(tmp_path, f"salt,0,kg,0.5\nsalt,{grams},g,\n")
    assert inventory["salt"].is_low is low


@pytest.mark.parametrize(("kilos", "low"), [("1999", True), ("2000", False)])
def test_a_minimum_in_a_larger_unit(tmp_path, kilos, low):
    inventory = stock(tmp_path, f"sand,0,t,2\nsand,{kilos},kg,\n")
    assert inventory["sand"].is_low is low


def test_the_report_shows_what_the_lists_add_up_to(tmp_path):
    inventory = stock(tmp_path, "flour,1200,g,1000\nflour,0.5,t,\nyeast,40,g,50\n")
    assert render(inventory).splitlines() == [
        "item   quantity  minimum",
        "FLOUR  501.2 kg  1 kg",
        "YEAST  0.04 kg   0.05 kg  low",
    ]


def test_the_command_line_mixes_lists(tmp_path, capsys):
    first = save(tmp_path, "tea,250,g,\n", "first.csv")
    second = save(tmp_path, "tea,1,kg,\n", "second.csv")
    assert main([str(first), str(second)]) == 0
    assert capsys.readouterr().out == "item  quantity\nTEA   1.25 kg\n"


def test_a_minimum_in_the_same_unit(tmp_path):
    inventory = stock(tmp_path, "x,9,g,10\ny,10,g,10\nz,4,t,5\n")
    assert [item.is_low for item in inventory] == [True, False, True]
