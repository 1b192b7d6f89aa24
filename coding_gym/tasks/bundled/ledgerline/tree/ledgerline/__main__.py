"""The command line: ``python -m ledgerline JOURNAL COMMAND``."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from ledgerline.amounts import Amount
from ledgerline.model import JournalError
from ledgerline.parser import parse
from ledgerline.periods import Period
from ledgerline.reports import BalanceRow, RegisterRow, balance_report, register_report


def main(argv: Sequence[str] | None = None, stream: TextIO | None = None) -> int:
    """Runs one command and gives the exit status: 0, or 1 for an unsound journal."""
    stream = sys.stdout if stream is None else stream
    options = _parser().parse_args(argv)
    try:
        journal = parse(options.journal.read_text(encoding="utf-8-sig"))
    except (OSError, JournalError) as error:
        print(f"ledgerline: {error}", file=sys.stderr)
        return 1
    if options.command == "check":
        print(f"{len(journal.transactions)} transactions, all balanced", file=stream)
    elif options.command == "balance":
        rows, total = balance_report(
            journal, period=options.period, under=options.account, commodity=options.commodity
        )
        write_balance(rows, total, stream)
    else:
        write_register(register_report(journal, options.account, period=options.period), stream)
    return 0


def write_balance(rows: Sequence[BalanceRow], total: Sequence[Amount], stream: TextIO) -> None:
    """Prints one line per account and commodity, indented by depth, and a total."""
    for row in rows:
        *parents, name = row.account.split(":")
        for amount in row.amounts:
            print(f"{amount!s:>20}  {'  ' * len(parents)}{name}", file=stream)
    print("-" * 20, file=stream)
    for line in [str(amount) for amount in total] or ["0"]:
        print(f"{line:>20}", file=stream)


def write_register(rows: Sequence[RegisterRow], stream: TextIO) -> None:
    """Writes one CSV line per posting, below a line with the names of the columns."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["date", "payee", "account", "quantity", "commodity", "running"])
    for row in rows:
        amount, running = row.amount, row.running.quantity
        writer.writerow(
            [row.date, row.payee, row.account, amount.quantity, amount.commodity, running]
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ledgerline", description="Reports on a journal.")
    parser.add_argument("journal", type=Path)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="only check that the journal is sound")
    balance = commands.add_parser("balance", help="what each account holds")
    balance.add_argument("account", nargs="?", default="")
    balance.add_argument("--in", dest="commodity", default="", metavar="COMMODITY")
    register = commands.add_parser("register", help="the postings of one account, as CSV")
    register.add_argument("account")
    for command in (balance, register):
        command.add_argument("--period", type=Period.parse, default=Period())
    return parser


if __name__ == "__main__":
    sys.exit(main())
