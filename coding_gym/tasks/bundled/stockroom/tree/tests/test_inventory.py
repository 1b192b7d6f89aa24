from decimal import Decimal

import pytest

from stockroom import Delivery, Inventory, StockroomError, UnitError, render
from stockroom.__main__ import main
from stockroom.units import parse_quantity


def delivery(code, number, unit, minimum=None, **options):
    least = None if minimum is None else parse_quantity(minimum, unit)
    return Delivery(code, parse_quantity(number, unit), minimum=least, **options)


@pytest.fixture
def inventory():
    inventory = Inventory()
    inventory.add([delivery("oil-5", "2,5", "l", name="Oil"), delivery("BOLT-8", "1200", "pcs")])
    return inventory


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        ("1200", "g", "1.2 kg"),
        ("0.5", "T", "500 kg"),
        ("-1234567", "pcs", "-1 234 567 pcs"),
        ("33", "cm", "0.33 m"),
        ("0,10", "l", "0.1 l"),
        ("-0,5", "l", "-0.5 l"),
        ("0", "ml", "0 l"),
    ],
    ids=["grams", "tonnes", "grouped", "centimetres", "comma", "negative", "zero"],
)
def test_quantities(number, unit, text):
    assert str(parse_quantity(number, unit)) == text


@pytest.mark.parametrize(
    "number",
    ["", "1.000,5", "1e3", "five", "\u0663", ".5"],
    ids=["empty", "grouped", "power", "word", "digit", "no-whole"],
)
def test_what_is_not_a_number(number):
    with pytest.raises(UnitError, match="is not a number"):
        parse_quantity(number, "kg")


def test_deliveries_add_up_without_rounding(inventory):
    inventory.add([delivery("OIL-5", "100", "ml")] * 10)
    assert inventory["Oil-5"].quantity.amount == Decimal("3.5")
    assert len(inventory) == 2


def test_units_of_one_kind_add_up(inventory):
    inventory.add([delivery("flour", "2", "kg"), delivery("flour", "500", "g")])
    assert str(inventory["flour"].quantity) == "2.5 kg"
    inventory.add([delivery("flour", "0.1", "t")])
    assert str(inventory["flour"].quantity) == "102.5 kg"
    inventory.add([delivery("cable", "3", "m"), delivery("cable", "-25", "cm")])
    assert str(inventory["cable"].quantity) == "2.75 m"


def test_the_last_name_and_minimum_count(inventory):
    inventory.add([delivery("oil-5", "0", "l", "4", name="Fine oil")])
    inventory.add([delivery("oil-5", "1", "l")])
    oil = inventory["oil-5"]
    assert (oil.name, str(oil.minimum)) == ("Fine oil", "4 l")


def test_kinds_of_units_do_not_mix(inventory):
    with pytest.raises(StockroomError, match="OIL-5: l and kg do not go together"):
        inventory.add([delivery("oil-5", "1", "kg")])


@pytest.mark.parametrize(("number", "low"), [("9.9", True), ("10", False), ("11", False)])
def test_low_is_below_the_minimum(number, low):
    inventory = Inventory()
    inventory.add([delivery("A", number, "m", "10")])
    assert inventory["A"].is_low is low


def test_the_report(inventory):
    inventory.add([delivery("oil-5", "5", "l", "10")])
    assert render(inventory) == (
        "item    name  quantity   minimum\n"
        "BOLT-8        1 200 pcs\n"
        "OIL-5   Oil   7.5 l      10 l     low\n"
    )
    assert render(inventory, low_only=True) == (
        "item   name  quantity  minimum\nOIL-5  Oil   7.5 l     10 l     low\n"
    )
    assert render([]) == "nothing to show\n"


def test_the_command_line(tmp_path, capsys):
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("item,quantity,unit\nx,1,kg\n", encoding="utf-8")
    second.write_text("item;quantity;unit\nX;250;g\n", encoding="utf-8")
    assert main([str(first), str(second)]) == 0
    assert capsys.readouterr().out == "item  quantity\nX     1.25 kg\n"
    second.write_text("item;quantity;unit\nX;250;ml\n", encoding="utf-8")
    assert main([str(first), str(second)]) == 1
    assert capsys.readouterr().err == "stockroom: X: kg and l do not go together\n"
