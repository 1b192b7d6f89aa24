import datetime as dt
import io

import pytest

from ledgerline import Period, balance_report, parse, register_report
from ledgerline.__main__ import main, write_register

JOURNAL = """\
2024-01-02 Opening balances
    Assets:Bank            1,000.00 EUR
    Equity:Opening
2024-01-05 Corner shop, "Nico"
    Expenses:Food             23.50 EUR
    Assets:Bank
2024-01-20 Pet shop
    Expenses:Foodbowl          6.00 EUR
    Assets:Bank
2024-02-09 Bureau de change
    Assets:Cash              100.00 USD @ 0.92 EUR
    Assets:Bank              -92.00 EUR
"""


def balances(**options):
    rows, total = balance_report(parse(JOURNAL), **options)
    return {row.account: [str(amount) for amount in row.amounts] for row in rows}, total


def test_parents_hold_the_sum_of_their_children():
    found, total = balances()
    assert found["Assets"] == ["878.50 EUR", "100.00 USD"]
    assert found["Assets:Bank"] == ["878.50 EUR"]
    assert found["Expenses"] == ["29.50 EUR"]
    assert [str(amount) for amount in total] == ["-92.00 EUR", "100.00 USD"]


def test_an_account_is_not_within_one_whose_name_it_begins_with():
    found, total = balances(under="Expenses:Food")
    assert found == {"Expenses:Food": ["23.50 EUR"]}
    assert [str(amount) for amount in total] == ["23.50 EUR"]


def test_the_register_runs_per_commodity():
    rows = register_report(parse(JOURNAL), "Assets")
    assert [str(row.running) for row in rows] == [
        "1000.00 EUR",
        "976.50 EUR",
        "970.50 EUR",
        "100.00 USD",
        "878.50 EUR",
    ]


def test_csv_quotes_what_needs_quotes():
    stream = io.StringIO()
    write_register(register_report(parse(JOURNAL), "Expenses:Food"), stream)
    assert stream.getvalue() == (
        "date,payee,account,quantity,commodity,running\n"
        '2024-01-05,"Corner shop, ""Nico""",Expenses:Food,23.50,EUR,23.50\n'
    )


def test_the_command_line_prints_a_balance(tmp_path):
    path = tmp_path / "books.ledger"
    path.write_text(JOURNAL, encoding="utf-8")
    stream = io.StringIO()
    assert main([str(path), "balance", "Expenses"], stream) == 0
    assert stream.getvalue().splitlines()[0] == f"{'29.50 EUR':>20}  Expenses"


def test_the_command_line_reports_an_unsound_journal(tmp_path, capsys):
    path = tmp_path / "books.ledger"
    path.write_text("2024-01-05 Shop\n    Expenses:Food  1 EUR\n", encoding="utf-8")
    assert main([str(path), "check"]) == 1
    assert "line 1: postings are off by 1 EUR" in capsys.readouterr().err


def day(text):
    return dt.date.fromisoformat(text)


def test_a_month_runs_to_the_first_of_the_next():
    assert Period.parse("2024-02") == Period(day("2024-02-01"), day("2024-03-01"))
    assert Period.parse("2023-12") == Period(day("2023-12-01"), day("2024-01-01"))


def test_years_and_days():
    assert Period.parse("2024") == Period(day("2024-01-01"), day("2025-01-01"))
    assert Period.parse("2024-02-29") == Period(day("2024-02-29"), day("2024-03-01"))


def test_spans_join_the_begins_of_two_points():
    assert Period.parse("2024-01..2024-03") == Period(day("2024-01-01"), day("2024-03-01"))
    assert Period.parse("2024-01-15..") == Period(day("2024-01-15"), None)
    assert Period.parse("..2024") == Period(None, day("2024-01-01"))


def test_neighbouring_months_share_no_day():
    january, february = Period.parse("2024-01"), Period.parse("2024-02")
    days = [day("2024-01-01") + dt.timedelta(days=number) for number in range(60)]
    assert [date for date in days if date in january and date in february] == []
    assert all(date in january or date in february for date in days)


def test_open_periods_hold_every_day():
    assert day("1970-01-01") in Period()
    assert day("1970-01-01") not in Period.parse("2024..")


@pytest.mark.parametrize(
    "text",
    ["", "24", "2024-13", "2024-02-30", "2024-03..2024-01"],
    ids=["empty", "short", "month", "day", "backwards"],
)
def test_refuses_what_is_no_period(text):
    with pytest.raises(ValueError):
        Period.parse(text)
