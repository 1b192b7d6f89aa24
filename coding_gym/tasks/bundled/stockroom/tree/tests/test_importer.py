from decimal import Decimal

import pytest

from stockroom import Delivery, ListError, read_list
from stockroom.units import Quantity

ROWS = "item,quantity,unit,name\nOIL-5,2,l,\u00d6l f\u00fcr K\u00f6pfe\n"
OIL = Delivery("OIL-5", Quantity(Decimal(2), "l"), "\u00d6l f\u00fcr K\u00f6pfe")


def save(folder, content, encoding="utf-8"):
    path = folder / "list.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings(tmp_path, encoding):
    assert read_list(save(tmp_path, ROWS, encoding)) == [OIL]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_delimiters_and_line_ends(tmp_path, delimiter, newline):
    text = ROWS.replace(",", delimiter).replace("\n", newline)
    assert read_list(save(tmp_path, text)) == [OIL]


def test_headers_may_be_in_any_order_case_and_spacing(tmp_path):
    text = "Unit ; QUANTITY; colour;Item\nkg;1,5;red; A \n;;;\n"
    assert read_list(save(tmp_path, text)) == [Delivery("A", Quantity(Decimal("1.5"), "kg"))]


def test_optional_columns(tmp_path):
    text = 'item,quantity,unit,name,minimum\nA,1,kg,"x, ""y""",500\nB,-2,g\nC,3,m,,\n'
    a, b, c = read_list(save(tmp_path, text))
    assert (a.name, a.minimum) == ('x, "y"', Quantity(Decimal(500), "kg"))
    assert (b.quantity, b.name) == (Quantity(Decimal("-0.002"), "kg"), None)
    assert (c.name, c.minimum) == (None, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column 'item'"),
        ("item,unit\n", "no column 'quantity'"),
        ("item,quantity,unit\nA,1,kg\nB,many,kg\n", "list.csv, row 3: 'many' is not a number"),
        ("item,quantity,unit\nA,1,stone\n", "row 2: 'stone' is not one of pcs"),
        ("item,quantity,unit\n,1,kg\n", "row 2: there is no item"),
        ('item,quantity,unit\n"A,1,kg\n', "list.csv, row 2"),
    ],
    ids=["empty", "column", "number", "unit", "item", "quotes"],
)
def test_bad_lists_are_refused(tmp_path, text, message):
    with pytest.raises(ListError, match=message):
        read_list(save(tmp_path, text))


def test_bytes_that_no_encoding_has_are_refused(tmp_path):
    with pytest.raises(ListError, match="list.csv: not valid cp1252 at byte 4"):
        read_list(save(tmp_path, b"item\x81\n"))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ListError, match="cannot read"):
        read_list(tmp_path / "missing.csv")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ListError, match="cannot read"):
        read_list(tmp_path)
