import pytest

from bourse import Book, Trade, format_price, parse_price, replay
from bourse.__main__ import main


@pytest.mark.parametrize(
    ("text", "cents"),
    [("10.5", 1050), ("0.1", 10), ("7.0", 700), ("99.9", 9990), ("10.05", 1005), ("12", 1200)],
)
def test_one_decimal_counts_tenths(text, cents):
    assert parse_price(text) == cents


@pytest.mark.parametrize(
    ("cents", "text"),
    [(1005, "10.05"), (9, "0.09"), (700, "7.00"), (1, "0.01"), (1050, "10.50"), (1099, "10.99")],
)
def test_prices_are_written_with_two_decimals(cents, text):
    assert format_price(cents) == text


def test_every_price_is_read_as_it_was_written():
    assert [parse_price(format_price(cents)) for cents in range(1, 1200)] == [*range(1, 1200)]


def test_a_journal_may_leave_out_the_last_nought():
    lines = ["09:00:00 sell ann 10 10.5", "09:00:01 buy bob 4 10.40", "09:00:02 buy cat 4 10.5"]
    assert replay(lines, Book()) == [Trade("ann", "cat", 1050, 4, 32402)]


def test_the_command_line_writes_two_decimals(tmp_path, capsys):
    (tmp_path / "day").write_text("09:00:00 sell ann 10 3.05\n09:00:01 buy bob 4 4\n")
    assert main([str(tmp_path / "day")]) == 0
    assert capsys.readouterr().out == "ann bob 4 3.05\n"
