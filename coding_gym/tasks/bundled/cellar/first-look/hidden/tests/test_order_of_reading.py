from itertools import permutations

import pytest

from cellar import Fault, Sheet

C = Fault.CYCLE


def values_in_every_order(**cells):
    """The values of formulas, by the order in which they are read."""
    formulas = [cell for cell, content in cells.items() if str(content).startswith("=")]
    found = []
    for order in permutations(formulas):
        sheet = Sheet()
        for cell, content in cells.items():
            sheet[cell] = content
        values = {cell: sheet[cell] for cell in order}
        found.append([values[cell] for cell in formulas])
    return found


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"A1": "=IFERROR(B1, 1)", "B1": "=A1+1"}, [C, C]),
        ({"A1": "=IFERROR(B1, 1)", "B1": "=IFERROR(C1, 2)", "C1": "=IFERROR(A1, 3)"}, [C, C, C]),
        ({"A1": 1, "B1": "=IF(A1, 10, C1)", "C1": "=B1+1"}, [C, C]),
        ({"A1": "=SUM(A2:A4)", "A3": "=IFERROR(A1, 0)", "A4": 5}, [C, C]),
        ({"A1": "=IFERROR(A1, 1)", "B1": "=A1+1"}, [C, C]),
    ],
    ids=["rescued", "all-rescued", "branch-not-taken", "area", "itself"],
)
def test_all_of_a_ring_is_a_cycle_in_every_order(cells, expected):
    assert values_in_every_order(**cells) == [expected] * len(values_in_every_order(**cells))


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"A1": "=B1", "B1": "=A1", "C1": "=IFERROR(A1, 7)", "D1": "=C1*2"}, [C, C, 7, 14]),
        ({"A1": "=IFERROR(B1, 0)", "B1": "=A1", "C1": "=A1+B1"}, [C, C, C]),
        (
            {"A1": "=B1", "B1": "=A1", "C1": "=IFERROR(B1, 4)", "D1": "=E1+C1", "E1": "=D1"},
            [C, C, 4, C, C],
        ),
    ],
    ids=["behind", "both", "between-two-rings"],
)
def test_cells_outside_of_a_ring_may_rescue_in_every_order(cells, expected):
    assert values_in_every_order(**cells) == [expected] * len(values_in_every_order(**cells))


def test_two_rings_that_share_a_cell():
    cells = {"A1": "=B1+IFERROR(C1, 1)", "B1": "=IFERROR(A1, 2)", "C1": "=A1"}
    assert values_in_every_order(**cells) == [[C, C, C]] * 6


def test_a_ring_that_is_closed_later():
    sheet = Sheet()
    sheet["A1"] = "=IFERROR(B1, 1)"
    sheet["B1"] = "=C1+1"
    sheet["C1"] = 5
    assert [sheet["A1"], sheet["B1"]] == [6, 6]
    sheet["C1"] = "=A1"
    assert [sheet["C1"], sheet["B1"], sheet["A1"]] == [C, C, C]
    sheet["C1"] = "=1/0"
    assert [sheet["A1"], sheet["B1"], sheet["C1"]] == [1, Fault.DIVISION, Fault.DIVISION]


def test_a_ring_that_is_broken_by_clearing():
    sheet = Sheet()
    sheet["A1"] = "=IFERROR(B1+10, 1)"
    sheet["B1"] = "=COUNT(A1:A1)"
    assert [sheet["B1"], sheet["A1"]] == [C, C]
    del sheet["A1"]
    assert [sheet["B1"], sheet["A1"]] == [0, None]


def test_copies_can_close_a_ring():
    sheet = Sheet()
    sheet["A1"] = "=IFERROR(B2, 1)"
    sheet["B1"] = "=IFERROR(A2, 2)"
    sheet.copy("A1", "A2")
    sheet["B2"] = 5
    sheet["B3"] = "=A2"
    assert [sheet["B3"], sheet["A2"]] == [C, C]
    assert [sheet["A1"], sheet["B1"]] == [5, 2]


def test_many_readers_of_one_cell_are_no_ring():
    cells = {"A1": "=B1+C1", "B1": "=C1+D1", "C1": "=D1", "D1": "=2*E1", "E1": 3}
    assert values_in_every_order(**cells) == [[18, 12, 6, 6]] * 24


def test_long_rings():
    sheet = Sheet()
    for row in range(1, 100):
        sheet[f"A{row}"] = f"=IFERROR(A{row % 99 + 1}, {row})"
    assert {sheet[f"A{row}"] for row in range(1, 100)} == {C}
