import io

import pytest

from ledgerline import Period, balance_report, parse
from ledgerline.__main__ import main

EXCHANGE = """\
2024-01-09 Bureau de change
    Assets:Cash              100 USD @ 0.92 EUR
    Assets:Bank
"""
PRICES = """\
P 2024-01-31 USD 0.93 EUR
P 2024-02-01 USD 0.95 EUR
P 2024-02-29 USD 0.96 EUR
"""


def worth(text, period="..", account="Assets:Cash", commodity="EUR"):
    rows, _ = balance_report(
        parse(text), period=Period.parse(period), under=account, commodity=commodity
    )
    return [str(amount) for row in rows if row.account == account for amount in row.amounts]


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ("2024-01", "93.00 EUR"),
        ("..2024-02", "93.00 EUR"),
        ("2024-01-01..2024-02-01", "93.00 EUR"),
        ("2024-01-01..2024-02-02", "95.00 EUR"),
        ("..2024-02-29", "95.00 EUR"),
        ("2024-01..2024-03", "96.00 EUR"),
        ("2024-01-09", "92.00 EUR"),
        ("..2024-01-31", "92.00 EUR"),
        ("2024", "96.00 EUR"),
        ("2024-01..", "96.00 EUR"),
        ("..", "96.00 EUR"),
    ],
    ids=lambda text: text.split()[0],
)
def test_the_last_day_of_the_period_decides(period, expected):
    assert worth(EXCHANGE + PRICES, period) == [expected]


@pytest.mark.parametrize("period", ["2024-01", "..2024-02-20", "2024", ".."])
def test_prices_may_be_written_down_late(period):
    lines = PRICES.splitlines(keepends=True)
    expected = worth(EXCHANGE + PRICES, period)
    assert worth(EXCHANGE + "".join(reversed(lines)), period) == expected
    assert worth("".join(reversed(lines)) + EXCHANGE, period) == expected
    assert worth(EXCHANGE + PRICES + "P 2024-01-15 USD 0.90 EUR\n", period) == expected


def test_transactions_may_be_written_down_late():
    later = EXCHANGE.replace("2024-01-09", "2024-02-10").replace("0.92", "0.94")
    assert worth(PRICES + later + EXCHANGE, "2024-01") == ["93.00 EUR"]
    assert worth(PRICES + later + EXCHANGE, "..2024-02-15") == ["188.00 EUR"]
    assert worth(later + EXCHANGE, "..2024-03") == ["188.00 EUR"]


def test_of_several_prices_of_a_day_the_last_one_counts():
    first, second = "P 2024-01-20 USD 0.91 EUR\n", "P 2024-01-20 USD 0.97 EUR\n"
    assert worth(EXCHANGE + first + second, "2024-01") == ["97.00 EUR"]
    assert worth(second + EXCHANGE + PRICES + first, "..2024-01-25") == ["91.00 EUR"]
    same_day = "P 2024-01-09 USD 0.99 EUR\n"
    assert worth(EXCHANGE + same_day, "2024-01") == ["99.00 EUR"]
    assert worth(same_day + EXCHANGE, "2024-01") == ["92.00 EUR"]


def test_prices_of_before_the_period_still_hold():
    later = (
        EXCHANGE.replace("2024-01-09", "2024-05-20")
        .replace(" @ 0.92 EUR", "")
        .replace("Assets:Bank", "Equity")
    )
    assert worth(PRICES + later, "2024-05") == ["96.00 EUR"]
    assert worth(PRICES + later, "2024-05-20..") == ["96.00 EUR"]


def test_what_has_no_price_yet_stays_as_it_is():
    text = "2024-01-02 Opening\n    Assets:Cash    100 USD\n    Equity\n" + PRICES
    assert worth(text, "..2024-01-31") == ["100 USD"]
    assert worth(text, "2024-01") == ["93.00 EUR"]


def test_each_commodity_has_prices_of_its_own():
    text = (
        "2024-01-02 Opening\n    Assets:Cash    100 USD\n    Assets:Cash    10 CHF\n    Equity\n"
        "P 2024-01-31 CHF 1.05 EUR\nP 2024-03-01 CHF 1.07 EUR\nP 2024-02-15 USD 20 SEK\n"
    ) + PRICES
    assert worth(text, "..2024-03") == ["106.50 EUR"]
    assert worth(text, "..2024-04") == ["106.70 EUR"]
    assert worth(text, "..2024-03", commodity="SEK") == ["10 CHF", "2000 SEK"]
    assert worth(text, "2024-01", commodity="SEK") == ["10 CHF", "100 USD"]


def test_totals_are_valued_alike():
    _, total = balance_report(
        parse(EXCHANGE + PRICES), period=Period.parse("2024-01"), commodity="EUR"
    )
    assert [str(amount) for amount in total] == ["1.00 EUR"]


def test_the_command_line_gives_the_same_sheet_for_ever(tmp_path):
    path = tmp_path / "books.ledger"
    sheets = []
    for text in (EXCHANGE + PRICES.splitlines()[0], EXCHANGE + PRICES):
        path.write_text(text, encoding="utf-8")
        stream = io.StringIO()
        assert main([str(path), "balance", "--in", "EUR", "--period", "2024-01"], stream) == 0
        sheets.append(stream.getvalue().splitlines())
    assert sheets[0] == sheets[1]
    assert sheets[0][-1].split() == ["1.00", "EUR"]


def test_without_a_commodity_nothing_is_valued():
    rows, total = balance_report(parse(EXCHANGE + PRICES), period=Period.parse("2024-01"))
    assert [str(amount) for amount in total] == ["-92.00 EUR", "100 USD"]
