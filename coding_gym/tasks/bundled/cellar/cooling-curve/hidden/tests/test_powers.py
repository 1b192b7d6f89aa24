from cellar import Fault, Sheet


def result(formula, **cells):
    sheet = Sheet()
    for cell, content in cells.items():
        sheet[cell] = content
    sheet["H9"] = formula
    return sheet["H9"]


def test_signs_in_front_of_powers():
    expected = {
        "=-2^2": -4,
        "=-A1^2": -9,
        "=10-3^2": 1,
        "=1+-A1^2": -8,
        "=--A1^2": 9,
        "=-+A1^2": -9,
        "=5*-2^2": -20,
        "=-SUM(A1:B1)^2": -25,
        "=(-A1)^2": 9,
        "=-(A1^2)": -9,
    }
    assert {formula: result(formula, A1=3, B1=2) for formula in expected} == expected


def test_powers_of_powers():
    expected = {
        "=2^3^2": 512,
        "=(2^3)^2": 64,
        "=2^2^2^0": 4,
        "=2^B1^A1": 256,
        "=100/2^2^1": 25,
        "=4^3^2^1/2^17": 2,
    }
    assert {formula: result(formula, A1=3, B1=2) for formula in expected} == expected


def test_signs_and_percents_in_exponents():
    expected = {
        "=2^-1": 0.5,
        "=2^-1^2": 0.5,
        "=2^-2^2": 0.0625,
        "=-2^-2": -0.25,
        "=2^+3": 8,
        "=2^--3": 8,
        "=4^50%": 2,
        "=-4^50%": -2,
        "=50%^2": 0.25,
    }
    assert {formula: result(formula) for formula in expected} == expected


def test_the_curve_of_the_bell():
    sheet = Sheet()
    for row, x in enumerate((-2, -1, 0, 1, 2), start=1):
        sheet[f"A{row}"] = x
        sheet[f"B{row}"] = f"=2^-A{row}^2"
    assert [sheet[f"B{row}"] for row in range(1, 6)] == [0.0625, 0.5, 1, 0.5, 0.0625]


def test_faults_in_powers():
    assert result("=0^-1") is Fault.DIVISION
    assert result("=-8^0.5*0") == 0
    assert result("=(-8)^0.5") is Fault.NUMBER
