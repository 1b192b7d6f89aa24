import io

import pytest

from ledgerline import AssertionFailedError, balance_report, parse, register_report
from ledgerline.__main__ import write_register

FERRY = """\
2024-03-02 Ferry
    Expenses:Travel     40.00 EUR
    Expenses:Food      150.00 SEK
    Assets:Wallet
"""


def held(journal, account):
    rows, _ = balance_report(journal, under=account)
    return {row.account: [str(amount) for amount in row.amounts] for row in rows}[account]


def test_both_commodities_are_taken_from_the_wallet():
    assert held(parse(FERRY), "Assets:Wallet") == ["-40.00 EUR", "-150.00 SEK"]


def test_the_books_sum_to_zero_with_three_commodities():
    journal = parse(
        "2024-03-02 Trip\n"
        "    Assets:Wallet\n"
        "    Expenses:Food       150.00 SEK\n"
        "    Expenses:Travel      40.00 EUR\n"
        "    Expenses:Gifts       12.00 CHF\n"
        "    Expenses:Food        11.50 EUR\n"
    )
    assert held(journal, "Assets:Wallet") == ["-12.00 CHF", "-51.50 EUR", "-150.00 SEK"]
    _, total = balance_report(journal)
    assert total == []


def test_a_commodity_that_is_balanced_already_is_not_touched():
    journal = parse(
        "2024-03-02 Mixed\n"
        "    Expenses:Travel     40.00 EUR\n"
        "    Assets:Bank        -40.00 EUR\n"
        "    Expenses:Food      150.00 SEK\n"
        "    Expenses:Gifts       9.00 CHF\n"
        "    Assets:Wallet\n"
    )
    assert held(journal, "Assets:Wallet") == ["-9.00 CHF", "-150.00 SEK"]


def test_prices_count_in_the_commodity_of_the_price():
    journal = parse(
        "2024-03-02 Exchange and lunch\n"
        "    Assets:Cash     100 USD @ 0.92 EUR\n"
        "    Expenses:Food    80.00 SEK\n"
        "    Assets:Wallet\n"
    )
    assert held(journal, "Assets:Wallet") == ["-92.00 EUR", "-80.00 SEK"]


def test_an_assertion_without_an_amount_sees_the_whole_transaction():
    journal = parse(
        "2024-03-01 Cash machine\n"
        "    Assets:Wallet     100.00 EUR\n"
        "    Assets:Wallet     500.00 SEK\n"
        "    Equity:Opening   -100.00 EUR\n"
        "    Equity:Opening   -500.00 SEK\n"
        + FERRY.rstrip("\n")
        + "   = 350.00 SEK\n"
        + "2024-03-03 Ferry\n"
        "    Expenses:Travel     10.00 EUR\n"
        "    Expenses:Food       50.00 SEK\n"
        "    Assets:Wallet   = 50.00 EUR\n"
    )
    assert held(journal, "Assets:Wallet") == ["50.00 EUR", "300.00 SEK"]


def test_a_wrong_assertion_on_such_a_line_is_still_found():
    with pytest.raises(AssertionFailedError, match="should hold -149 SEK, but holds -150.00 SEK"):
        parse(FERRY.rstrip("\n") + "   = -149 SEK\n")


def test_the_register_shows_one_row_per_commodity():
    stream = io.StringIO()
    write_register(register_report(parse(FERRY), "Assets"), stream)
    assert stream.getvalue().splitlines()[1:] == [
        "2024-03-02,Ferry,Assets:Wallet,-40.00,EUR,-40.00",
        "2024-03-02,Ferry,Assets:Wallet,-150.00,SEK,-150.00",
    ]


def test_one_commodity_still_books_one_row():
    journal = parse("2024-03-02 Ferry\n  Expenses:Travel  40.00 EUR\n  Assets:Wallet\n")
    assert len(journal.transactions[0].postings) == 2
    assert held(journal, "Assets:Wallet") == ["-40.00 EUR"]


def test_an_assertion_holds_where_nothing_is_needed():
    journal = parse(
        "2024-01-02 Opening\n  Assets:Bank  70 EUR\n  Equity:Opening\n"
        "2024-01-03 Move\n  Assets:A  5 EUR\n  Assets:B  -5 EUR\n  Assets:Bank  = 70 EUR\n"
    )
    assert held(journal, "Assets:Bank") == ["70 EUR"]
