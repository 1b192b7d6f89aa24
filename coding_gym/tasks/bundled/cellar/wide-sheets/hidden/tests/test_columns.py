from itertools import pairwise

import pytest

from cellar import Fault, Sheet


def copied(formula, source, target):
    sheet = Sheet()
    sheet[source] = formula
    sheet.copy(source, target)
    return sheet.formula(target)


@pytest.mark.parametrize(
    ("target", "expected"),
    [("C1", "=B1"), ("Z1", "=Y1"), ("AA1", "=Z1"), ("AB1", "=AA1"), ("BA1", "=AZ1")],
)
def test_formulas_copied_to_the_right(target, expected):
    assert copied("=A1", "B1", target) == expected


@pytest.mark.parametrize("column", ["Z", "AZ", "BZ", "ZZ", "AAZ", "AZZ", "ZZZ"])
def test_last_columns_of_a_round(column):
    sheet = Sheet()
    sheet[f"{column}3"] = 1
    assert sheet.used() == f"{column}3:{column}3"


@pytest.mark.parametrize("column", ["A", "Y", "AA", "AY", "ZY", "AAA", "BCD"])
def test_other_columns(column):
    sheet = Sheet()
    sheet[f"{column}3"] = 1
    assert sheet.used() == f"{column}3:{column}3"


def test_kept_columns_keep_their_letters():
    assert copied("=$Z1+$AZ$2", "A1", "C5") == "=$Z5+$AZ$2"


def test_areas_that_span_a_round():
    assert copied("=SUM(Y1:AA1)", "A1", "A2") == "=SUM(Y2:AA2)"
    assert copied("=SUM(X1:Y1)", "A1", "B1") == "=SUM(Y1:Z1)"


def test_copied_formulas_have_values_in_every_column():
    sheet = Sheet()
    sheet["A1"] = 1
    sheet["B1"] = "=A1+1"
    names = [chr(ord("A") + number) for number in range(26)]
    columns = names + [first + second for first in "AB" for second in names]
    for source, target in pairwise(columns[1:]):
        sheet.copy(f"{source}1", f"{target}1")
    assert [sheet[f"{column}1"] for column in columns] == list(range(1, 79))


def test_the_table_has_all_columns():
    sheet = Sheet()
    sheet["Y1"], sheet["Z1"], sheet["AA1"] = 1, 2, 3
    assert sheet.table("Y1:AA1") == [["1", "2", "3"]]


def test_there_is_nothing_beyond_the_last_column():
    sheet = Sheet()
    sheet["B1"] = "=ZZY1"
    sheet.copy("B1", "C1")
    sheet.copy("B1", "D1")
    assert sheet.formula("C1") == "=ZZZ1"
    assert sheet["D1"] is Fault.REFERENCE
