"""Journals, transactions, postings, and the names of accounts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from ledgerline.amounts import Amount


class JournalError(ValueError):
    """A journal cannot be used as it is written.

    Attributes:
        line: the line of the journal that the error is about, counted from 1.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Posting:
    """One line of a transaction.

    ``amount`` is None where the journal leaves it out; booking fills it in if anything is needed.
    """

    account: str
    amount: Amount | None = None
    price: Amount | None = None
    asserted: Amount | None = None
    line: int = 0

    @property
    def weight(self) -> Amount | None:
        """What this posting counts for when its transaction is balanced."""
        if self.amount is None or self.price is None:
            return self.amount
        return self.amount.at(self.price)


@dataclass(frozen=True, slots=True)
class Transaction:
    """A dated set of postings that sum to zero."""

    date: dt.date
    payee: str
    postings: tuple[Posting, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Price:
    """What one unit of a commodity is worth from a day on."""

    date: dt.date
    commodity: str
    price: Amount
    line: int = 0


@dataclass(frozen=True, slots=True)
class Journal:
    """Booked transactions in the order of their dates, and all prices as they are in the file."""

    transactions: list[Transaction]
    prices: tuple[Price, ...] = ()

    def postings(self) -> Iterator[tuple[Transaction, Posting]]:
        """Every posting with the transaction that it belongs to."""
        for transaction in self.transactions:
            for posting in transaction.postings:
                yield transaction, posting


def is_within(account: str, parent: str) -> bool:
    """Whether ``account`` is ``parent`` or lies anywhere below it."""
    return account == parent or account.startswith(f"{parent}:")


def lineage(account: str) -> Iterator[str]:
    """``account`` and every account above it, topmost first."""
    parts = account.split(":")
    for count in range(1, len(parts) + 1):
        yield ":".join(parts[:count])
