import io

import pytest

from ledgerline import ParseError, balance_report, parse
from ledgerline.__main__ import main

JOURNAL = """\
P 2024-01-01 CHF 1.05 EUR
2024-01-02 Opening balances
    Assets:Bank            1,000.00 EUR
    Assets:Vault              10.00 CHF
    Equity:Opening
2024-01-09 Bureau de change
    Assets:Cash              100.00 USD @ 0.92 EUR
    Assets:Bank
P 2024-01-31 USD 0.93 EUR ; in the evening
2024-02-01 Sunday market
    Expenses:Gifts             5.00 SEK
    Assets:Wallet
"""


def worth(journal, account, **options):
    rows, _ = balance_report(journal, under=account, **options)
    return {row.account: [str(amount) for amount in row.amounts] for row in rows}.get(account)


def test_a_balance_in_one_commodity():
    journal = parse(JOURNAL)
    assert worth(journal, "Assets:Vault", commodity="EUR") == ["10.5000 EUR"]
    assert worth(journal, "Assets:Cash", commodity="EUR") == ["93.0000 EUR"]
    assert worth(journal, "Assets", commodity="EUR") == ["1011.5000 EUR", "-5.00 SEK"]


def test_without_it_all_stays_as_it_is():
    assert worth(parse(JOURNAL), "Assets:Cash") == ["100.00 USD"]
    assert worth(parse(JOURNAL), "Assets:Cash", commodity="SEK") == ["100.00 USD"]


def test_the_command_line_values_a_balance(tmp_path):
    path = tmp_path / "books.ledger"
    path.write_text(JOURNAL, encoding="utf-8")
    stream = io.StringIO()
    assert main([str(path), "balance", "Assets:Vault", "--in", "EUR"], stream) == 0
    assert stream.getvalue().splitlines()[0] == f"{'10.5000 EUR':>20}    Vault"


@pytest.mark.parametrize("line", ["P 2024-01-01", "P 2024-02-30 USD 1 EUR", "P 2024-01-01 USD x"])
def test_malformed_prices_are_refused(line):
    with pytest.raises(ParseError, match="line 2"):
        parse("\n" + line + "\n")
