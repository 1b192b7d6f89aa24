import pytest

from cellar import Fault, FormulaError, Sheet


def result(formula, **cells):
    sheet = Sheet()
    for cell, content in cells.items():
        sheet[cell] = content
    sheet["H9"] = formula
    return sheet["H9"]


def test_operators():
    expected = {
        "=1+2*3": 7,
        "=(1+2)*3": 9,
        "=10-4-3": 3,
        "=100/5/2": 10,
        "=2^10": 1024,
        "=2*3^2": 18,
        "=-5+3": -2,
        "=3--4": 7,
        "=200*15%": 30,
        "=1.5e2+.5": 150.5,
        '="a"&"b"&1': "ab1",
        '="say ""hi"""': 'say "hi"',
        "=1+1=2": True,
        "=3<>3": False,
        '="Oslo"="OSLO"': True,
        '="1"=1': False,
        "=2>=3": False,
    }
    assert {formula: result(formula) for formula in expected} == expected


def test_functions():
    expected = {
        "=SUM(A1:B2)": 10,
        "=SUM(A1:B3, 5)": 15,
        "=average(A1:A2)": 2,
        "=MIN(A1:B2)": 1,
        "=MAX(A1:B2, 9)": 9,
        "=COUNT(A1:B3)": 4,
        "=AND(A1, B1)": True,
        "=OR(A3, 0)": False,
        "=NOT(A1)": False,
        '=IF(A1<B1, "less", "more")': "less",
        "=IF(FALSE, 1)": False,
        "=IFERROR(1/0, A1)": 1,
        "=IFERROR(A2, 0)": 3,
        "=ABS(-4)": 4,
        "=ROUND(2.5)": 3,
        "=ROUND(2.345, 2)": 2.35,
        "=ROUND(1250, -2)": 1300,
        "=LOG10(1000)": 3,
        "=LEN(B3)": 5,
        "=UPPER(B3)": "APPLE",
    }
    cells = {"A1": 1, "B1": 2, "A2": 3, "B2": 4, "B3": "apple"}
    assert {formula: result(formula, **cells) for formula in expected} == expected


def test_faults():
    expected = {
        "=1/0": Fault.DIVISION,
        "=AVERAGE(A1:A3)": Fault.DIVISION,
        '="a"+1': Fault.VALUE,
        "=A1:A2+1": Fault.VALUE,
        "=ABS(1, 2)": Fault.VALUE,
        "=FOO(1)": Fault.NAME,
        "=TOTAL": Fault.NAME,
        "=LOG10(0)": Fault.NUMBER,
        "=10.0^400": Fault.NUMBER,
        "=#REF!+1": Fault.REFERENCE,
        "=SUM(1, 1/0)": Fault.DIVISION,
    }
    assert {formula: result(formula) for formula in expected} == expected


def test_malformed_formulas_are_refused():
    sheet = Sheet()
    sheet["A1"] = 5
    for formula in ("=", "=1+", "=(1", "=1)", "=SUM(1,)", "=1 2", "=A1:", "=A1:2", '="open', "=?"):
        with pytest.raises(FormulaError):
            sheet["A1"] = formula
    assert sheet["A1"] == 5


def test_cells_that_hold_no_number_are_not_counted():
    assert result("=COUNT(A1, A2, 7)", A2="two") == 1
    assert result("=SUM(A1:A1, A2)", A2="two") == 0


def test_corners_of_an_area_may_be_given_in_any_order():
    assert result("=SUM(B2:A1)", A1=1, B1=2, A2=3, B2=4) == 10
    assert result("=SUM(A2:B1)", A1=1, B1=2, A2=3, B2=4) == 10
