import pytest

from bourse import (
    Book,
    BourseError,
    Candle,
    JournalError,
    Trade,
    candles,
    format_price,
    parse_price,
    replay,
)
from bourse.__main__ import main

DAY = """
09:00:00 sell ann 100 10.15   # the first one
09:00:30 buy bob 40 10.20
09:01:00 cancel ann
"""


def test_prices():
    assert [parse_price(text) for text in ("10.15", "0.99", "123.45")] == [1015, 99, 12345]
    assert [format_price(cents) for cents in (1015, 99, 12345)] == ["10.15", "0.99", "123.45"]


@pytest.mark.parametrize("text", ["", "ten", "1,5", "-1.00", ".5", "1.234"])
def test_other_prices_are_refused(text):
    with pytest.raises(BourseError, match="price"):
        parse_price(text)


def test_replaying():
    book = Book()
    assert replay(DAY.splitlines(), book) == [Trade("ann", "bob", 1015, 40, 32430)]
    assert "ann" not in book


def test_errors_name_the_line():
    with pytest.raises(JournalError, match="line 2"):
        replay(["09:00:00 sell ann 1 1.25", "09:00:00 rent ann"], Book())


def test_the_command_line(tmp_path, capsys):
    (tmp_path / "day").write_text(DAY)
    assert main([str(tmp_path / "day")]) == 0
    assert capsys.readouterr().out == "ann bob 40 10.15\n"


def test_candles():
    trades = [
        Trade("a", "b", price, 10, at) for at, price in ((5, 100), (20, 90), (59, 110), (70, 105))
    ]
    assert candles(trades, 60, 0, 120) == [
        Candle(0, 100, 110, 90, 110, 30),
        Candle(60, 105, 105, 105, 105, 10),
    ]


def test_candles_have_a_width():
    with pytest.raises(BourseError, match="width"):
        candles([], 0, 0, 60)
