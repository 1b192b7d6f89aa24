import datetime as dt
import io

from ledgerline import Period, balance_report, parse, register_report
from ledgerline.__main__ import main

JOURNAL = """\
2023-12-31 New year's eve
    Expenses:Food    10 EUR
    Assets:Bank
2024-01-01 New year
    Expenses:Food    20 EUR
    Assets:Bank
2024-01-31 Rent
    Expenses:Rent   400 EUR
    Assets:Bank
2024-02-01 Rent
    Expenses:Rent   410 EUR
    Assets:Bank
"""


def spent(period):
    rows, _ = balance_report(parse(JOURNAL), period=Period.parse(period), under="Expenses")
    return {row.account: str(row.amounts[0]) for row in rows}


def test_the_first_of_next_month_is_not_in_this_month():
    assert spent("2024-01") == {
        "Expenses": "420 EUR",
        "Expenses:Food": "20 EUR",
        "Expenses:Rent": "400 EUR",
    }


def test_the_last_day_of_a_month_is_in_it():
    assert dt.date(2024, 1, 31) in Period.parse("2024-01")
    assert dt.date(2024, 2, 29) in Period.parse("2024-02")


def test_a_year_leaves_the_next_new_year_out():
    assert spent("2023") == {"Expenses": "10 EUR", "Expenses:Food": "10 EUR"}


def test_a_single_day_is_one_day():
    rows = register_report(parse(JOURNAL), "Expenses", period=Period.parse("2024-01-31"))
    assert [row.date for row in rows] == [dt.date(2024, 1, 31)]


def test_a_span_leaves_its_end_out_and_keeps_its_begin():
    period = Period.parse("2024-01-01..2024-02-01")
    rows = register_report(parse(JOURNAL), "Expenses", period=period)
    assert [row.date.isoformat() for row in rows] == ["2024-01-01", "2024-01-31"]


def test_an_open_begin_still_ends():
    assert spent("..2024") == {"Expenses": "10 EUR", "Expenses:Food": "10 EUR"}


def test_an_empty_span_holds_no_day():
    assert dt.date(2024, 1, 1) not in Period.parse("2024-01-01..2024-01-01")


def test_an_open_end_keeps_its_begin():
    period = Period.parse("2024-02-01..")
    assert dt.date(2024, 2, 1) in period
    assert dt.date(2024, 1, 31) not in period


def test_the_months_on_the_command_line_add_up_to_the_year(tmp_path):
    path = tmp_path / "books.ledger"
    path.write_text(JOURNAL, encoding="utf-8")
    lines = []
    for month in range(1, 13):
        stream = io.StringIO()
        period = f"2024-{month:02}"
        assert main([str(path), "register", "Expenses", "--period", period], stream) == 0
        lines += stream.getvalue().splitlines()[1:]
    assert [line.split(",")[3] for line in lines] == ["20", "400", "410"]
