import pytest

from cellar import AddressError, Fault, Sheet


def filled(**cells):
    sheet = Sheet()
    for cell, content in cells.items():
        sheet[cell] = content
    return sheet


def test_cells_hold_numbers_texts_and_truth_values():
    sheet = filled(A1=1.5, A2="one", A3=True)
    assert [sheet["A1"], sheet["A2"], sheet["A3"], sheet["A4"]] == [1.5, "one", True, None]
    assert sheet["a2"] == "one"


def test_clearing_a_cell():
    sheet = filled(A1=1, A2=2, A3=3, B1="=COUNT(A1:A3)")
    assert sheet["B1"] == 3
    del sheet["A1"]
    sheet["A2"] = None
    sheet["A3"] = ""
    assert sheet["B1"] == 0
    assert sheet.used() == "B1:B1"


@pytest.mark.parametrize("cell", ["", "A", "7", "A0", "A01", "ABCD1", "A1000000", "A1:B2", "B-1"])
def test_there_are_only_so_many_cells(cell):
    sheet = Sheet()
    with pytest.raises(AddressError):
        sheet[cell] = 1


def test_values_follow_what_they_depend_on():
    sheet = filled(A1=1, A2="=A1+1", A3="=A2*10")
    assert sheet["A3"] == 20
    sheet["A1"] = 4
    assert sheet["A3"] == 50
    sheet["A2"] = 7
    assert sheet["A3"] == 70


def test_areas_notice_cells_that_are_filled_later():
    sheet = filled(A1=1, B1="=SUM(A1:A9)", C1="=B1*2")
    assert sheet["C1"] == 2
    sheet["A5"] = "=A1+1"
    assert sheet["C1"] == 6
    sheet["A1"] = 10
    assert sheet["C1"] == 42


def test_replaced_formulas_no_longer_depend_on_anything():
    sheet = filled(A1=1, B1="=A1")
    sheet["B1"] = "=C1"
    sheet["A1"] = "=B1"
    sheet["C1"] = 3
    assert sheet["A1"] == 3


def test_faults_spread():
    sheet = filled(A1=0, A2="=1/A1", A3="=A2+1", A4="=SUM(A1:A3)", A5="=IFERROR(A4, -1)")
    assert sheet["A3"] is Fault.DIVISION
    assert sheet["A4"] is Fault.DIVISION
    assert sheet["A5"] == -1
    sheet["A1"] = 2
    assert sheet["A5"] == 4


def test_cycles_are_faults_until_they_are_broken():
    sheet = filled(A1="=B1+1", B1="=C1", C1="=A1", D1="=C1*2")
    for cell in ("A1", "B1", "C1", "D1"):
        assert sheet[cell] is Fault.CYCLE
    sheet["C1"] = 5
    assert [sheet[cell] for cell in ("A1", "B1", "C1", "D1")] == [6, 5, 5, 10]


def test_a_cell_that_mentions_itself():
    sheet = filled(A1="=A1", B2="=SUM(A1:C3)")
    assert sheet["A1"] is Fault.CYCLE
    assert sheet["B2"] is Fault.CYCLE


def test_long_chains():
    sheet = filled(A1=1)
    for row in range(2, 600):
        sheet[f"A{row}"] = f"=A{row - 1}+1"
    assert sheet["A599"] == 599


def test_copies_move_along():
    sheet = filled(A1=1, A2=2, B1=10, B2=20, C1="=A1 + $A$2*B1")
    sheet.copy("C1", "C2")
    assert sheet.formula("C2") == "=A2 + $A$2*B2"
    assert sheet["C2"] == 42
    sheet.copy("C1", "D1")
    assert sheet.formula("D1") == "=B1 + $A$2*C1"
    sheet.copy("A1", "E1")
    assert sheet["E1"] == 1
    assert sheet.formula("E1") is None


def test_half_kept_references():
    sheet = filled(B2="=$A1+A$1+SUM(A1:$A1)")
    sheet.copy("B2", "D5")
    assert sheet.formula("D5") == "=$A4+C$1+SUM(C4:$A4)"


def test_references_that_leave_the_sheet_are_lost():
    sheet = filled(B2="=SUM(A1:B1)")
    sheet.copy("B2", "A2")
    assert sheet.formula("A2") == "=SUM(#REF!:A1)"
    assert sheet["A2"] is Fault.REFERENCE
    sheet.copy("B2", "B1")
    assert sheet["B1"] is Fault.REFERENCE


def test_the_table_shows_values():
    sheet = filled(A1="item", B1="price", A2="tea", B2="=7/2", A3="sum", B3="=SUM(B2:B2)*2")
    sheet["C3"] = True
    assert sheet.used() == "A1:C3"
    assert sheet.table("A1:C3") == [["item", "price", ""], ["tea", "3.5", ""], ["sum", "7", "TRUE"]]
    assert sheet.table("B3") == [["7"]]
