import pytest

from cellar import Sheet


def copied(formula, target, source="C3"):
    sheet = Sheet()
    sheet[source] = formula
    sheet.copy(source, target)
    return sheet.formula(target)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ('="see A1: "&A1', '="see A1: "&B2'),
        ('=IF(B2>0, "Q4", "H2 $A$1")', '=IF(C3>0, "Q4", "H2 $A$1")'),
        ('="say ""A1"" to "&A1', '="say ""A1"" to "&B2'),
        ('=""&A1&"A1"', '=""&B2&"A1"'),
        ('=A1&"""A1"', '=B2&"""A1"'),
        ('=LEN("B2:B9")+SUM(B2:B9)', '=LEN("B2:B9")+SUM(C3:C10)'),
    ],
    ids=["label", "choice", "quoted", "empty", "half-quoted", "area"],
)
def test_texts_stay_as_they_are(formula, expected):
    assert copied(formula, "D4") == expected


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("=LOG10(A1)", "=LOG10(B2)"),
        ("=log10( A1 )", "=log10( B2 )"),
        ("=LOG10 (LOG10(B1))", "=LOG10 (LOG10(C2))"),
        ("=ATAN2(A1, A2)", "=ATAN2(B2, B3)"),
    ],
    ids=["plain", "lower", "nested", "unknown"],
)
def test_functions_keep_their_names(formula, expected):
    assert copied(formula, "D4") == expected


def test_a_text_that_would_leave_the_sheet_stays():
    assert copied('="A1"&B2', "B2") == '="A1"&A1'


def test_copies_of_functions_have_values():
    sheet = Sheet()
    for row, number in enumerate((10, 100, 1000), start=1):
        sheet[f"A{row}"] = number
    sheet["B1"] = '=LOG10(A1)&" of A1"'
    sheet.copy("B1", "B2")
    sheet.copy("B2", "B3")
    assert [sheet[f"B{row}"] for row in (1, 2, 3)] == ["1 of A1", "2 of A1", "3 of A1"]


def test_blanks_and_case_stay_where_nothing_moves():
    assert copied("=  sum( $a$1 ,\t$B$2)  *2 ", "D4") == "=  sum( $A$1 ,\t$B$2)  *2 "


def test_names_and_numbers_are_no_references():
    assert copied("=A1+1E5+tax20x+B12", "D4") == "=B2+1E5+tax20x+C13"


def test_references_next_to_operators_move():
    assert copied("=-A1^B2%+(A1<>$B1)*A$2", "D4") == "=-B2^C3%+(B2<>$B2)*B$2"
