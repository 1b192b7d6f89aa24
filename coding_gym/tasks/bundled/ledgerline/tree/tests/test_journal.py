import datetime as dt
from decimal import Decimal

import pytest

from ledgerline import Amount, AssertionFailedError, ParseError, UnbalancedError, parse
from ledgerline.reports import balance_report


def booked(journal):
    return [(posting.account, str(posting.amount)) for _, posting in journal.postings()]


def test_reads_dates_payees_and_postings():
    journal = parse(
        "2024-01-05 Corner shop ; weekly\n"
        "    Expenses:Food    23.50 EUR\n"
        "    Assets:Bank     -23.50 EUR\n"
    )
    (transaction,) = journal.transactions
    assert transaction.date == dt.date(2024, 1, 5)
    assert transaction.payee == "Corner shop"
    assert [posting.account for posting in transaction.postings] == ["Expenses:Food", "Assets:Bank"]
    assert transaction.postings[0].amount == Amount(Decimal("23.50"), "EUR")


def test_commas_group_thousands():
    assert Amount.parse("-1,234.50 EUR") == Amount(Decimal("-1234.50"), "EUR")
    assert Amount.parse("20$") == Amount(Decimal(20), "$")


def test_amounts_need_a_commodity():
    with pytest.raises(ValueError, match="number and a commodity"):
        Amount.parse("12.50")


def test_account_names_may_hold_single_spaces():
    journal = parse("2024-01-05 Shop\n  Expenses:Eating out\t9 EUR\n  Assets:Cash in hand\n")
    accounts = [posting.account for _, posting in journal.postings()]
    assert accounts == ["Expenses:Eating out", "Assets:Cash in hand"]


def test_reads_prices_and_assertions():
    journal = parse(
        "2024-01-09 Exchange\n"
        "    Assets:Cash     100 USD @ 0.92 EUR = 100 USD\n"
        "    Assets:Bank  -92.00 EUR\n"
    )
    posting = journal.transactions[0].postings[0]
    assert posting.price == Amount(Decimal("0.92"), "EUR")
    assert posting.asserted == Amount(Decimal(100), "USD")
    assert posting.weight == Amount(Decimal("92.00"), "EUR")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("hello\n", 1, id="no-date"),
        pytest.param("2024-02-30 No such day\n", 1, id="no-such-date"),
        pytest.param("2024-01-05 Shop\n  Expenses::Food  1 EUR\n", 2, id="account"),
        pytest.param("2024-01-05 Shop\n  Expenses:Food  lots\n", 2, id="amount"),
        pytest.param("\n    Expenses:Food  1 EUR\n", 2, id="stray-posting"),
    ],
)
def test_errors_name_the_line(text, line):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.line == line


def test_a_left_out_amount_balances_the_transaction():
    journal = parse("2024-01-05 Shop\n  Expenses:Food  23.50 EUR\n  Assets:Bank\n")
    assert booked(journal) == [("Expenses:Food", "23.50 EUR"), ("Assets:Bank", "-23.50 EUR")]


def test_a_left_out_amount_follows_the_price():
    journal = parse("2024-01-09 Exchange\n  Assets:Cash  100 USD @ 0.92 EUR\n  Assets:Bank\n")
    assert booked(journal)[1] == ("Assets:Bank", "-92.00 EUR")


def test_a_left_out_amount_covers_every_commodity():
    journal = parse(
        "2024-03-02 Ferry\n"
        "    Expenses:Travel     40.00 EUR\n"
        "    Expenses:Food      150.00 SEK\n"
        "    Assets:Wallet\n"
    )
    _, total = balance_report(journal)
    assert total == []


def test_a_left_out_amount_that_is_not_needed_books_nothing():
    journal = parse("2024-01-05 Move\n  Assets:A  5 EUR\n  Assets:B  -5 EUR\n  Equity:Rest\n")
    rows, _ = balance_report(journal)
    assert "Equity:Rest" not in [row.account for row in rows]


def test_only_one_amount_may_be_left_out():
    with pytest.raises(UnbalancedError, match="line 1: only one"):
        parse("2024-01-05 Shop\n  Expenses:Food\n  Assets:Bank\n")


def test_postings_must_sum_to_zero():
    with pytest.raises(UnbalancedError, match="off by 0.50 EUR"):
        parse("2024-01-05 Shop\n  Expenses:Food  23.50 EUR\n  Assets:Bank  -23 EUR\n")


def test_transactions_are_sorted_by_date_and_keep_their_order_within_a_day():
    journal = parse(
        "2024-01-06 Third\n  A  1 EUR\n  B\n"
        "2024-01-05 Zeta\n  A  1 EUR\n  B\n"
        "2024-01-05 Alpha\n  A  1 EUR\n  B\n"
    )
    assert [transaction.payee for transaction in journal.transactions] == ["Zeta", "Alpha", "Third"]


def test_assertions_look_at_one_account_and_one_commodity():
    journal = parse(
        "2024-01-02 Opening\n  Assets:Bank  100 EUR\n  Assets:Bank:Vault  7 USD\n"
        "  Equity:Opening  -100 EUR\n  Equity:Opening  -7 USD\n"
        "2024-01-03 Shop\n  Expenses:Food  30 EUR\n  Assets:Bank  = 70.00 EUR\n"
    )
    assert journal.transactions[1].postings[1].amount == Amount.parse("-30 EUR")


def test_a_wrong_assertion_is_reported_with_both_balances():
    with pytest.raises(AssertionFailedError, match="hold 71 EUR, but holds 70 EUR") as caught:
        parse(
            "2024-01-02 Opening\n  Assets:Bank  100 EUR\n  Equity:Opening\n"
            "2024-01-03 Shop\n  Expenses:Food  30 EUR\n  Assets:Bank  = 71 EUR\n"
        )
    assert caught.value.line == 6
