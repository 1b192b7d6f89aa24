"""Balance and register reports as plain rows."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass

from ledgerline.amounts import Amount, Balance
from ledgerline.model import Journal, is_within, lineage
from ledgerline.periods import Period
from ledgerline.prices import Valuation

ALWAYS = Period()


@dataclass(frozen=True, slots=True)
class BalanceRow:
    """One account with all that is booked on it and below it."""

    account: str
    amounts: list[Amount]


@dataclass(frozen=True, slots=True)
class RegisterRow:
    """One posting, and the sum of the rows up to it in the same commodity."""

    date: dt.date
    payee: str
    account: str
    amount: Amount
    running: Amount


def balance_report(
    journal: Journal, *, period: Period = ALWAYS, under: str = "", commodity: str = ""
) -> tuple[list[BalanceRow], list[Amount]]:
    """Balances by account, parents included, and the total of all postings.

    Args:
        journal: what to report on.
        period: count postings of these days only.
        under: if given, count this account and those below it only.
        commodity: if given, value what has a price in this commodity.
    """
    valuation = Valuation(commodity, journal.prices, period.end)
    balances: defaultdict[str, Balance] = defaultdict(Balance)
    total = Balance()
    for transaction, posting in journal.postings():
        if transaction.date not in period or posting.amount is None:
            continue
        if under and not is_within(posting.account, under):
            continue
        amount = valuation.value(posting.amount)
        total.add(amount)
        for name in lineage(posting.account):
            balances[name].add(amount)
    rows = [
        BalanceRow(name, balances[name].amounts())
        for name in sorted(balances)
        if not under or is_within(name, under)
    ]
    return rows, total.amounts()


def register_report(
    journal: Journal, account: str, *, period: Period = ALWAYS
) -> list[RegisterRow]:
    """Every posting on ``account`` or below it, in order, with a running balance.

    The running balance starts from zero at the begin of ``period``.
    """
    rows: list[RegisterRow] = []
    running = Balance()
    for transaction, posting in journal.postings():
        amount = posting.amount
        if amount is None or transaction.date not in period:
            continue
        if is_within(posting.account, account):
            running.add(amount)
            total = Amount(running.of(amount.commodity), amount.commodity)
            rows.append(
                RegisterRow(transaction.date, transaction.payee, posting.account, amount, total)
            )
    return rows
