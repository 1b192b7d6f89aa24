"""From transactions as written to transactions as booked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from ledgerline.amounts import Amount, Balance
from ledgerline.model import Journal, JournalError, Posting, Price, Transaction


class UnbalancedError(JournalError):
    """The postings of a transaction do not sum to zero."""


class AssertionFailedError(JournalError):
    """An asserted balance is not the balance that the account has."""


def book(transactions: Iterable[Transaction], prices: Iterable[Price] = ()) -> Journal:
    """Completes and sorts ``transactions`` and checks their assertions.

    The prices of postings join ``prices``.

    Raises:
        UnbalancedError: if a transaction does not sum to zero.
        AssertionFailedError: if an asserted balance is not met.
    """
    completed = [complete(transaction) for transaction in transactions]
    paid = [
        Price(transaction.date, posting.amount.commodity, posting.price, posting.line)
        for transaction in completed
        for posting in transaction.postings
        if posting.amount is not None and posting.price is not None
    ]
    journal = Journal(
        sorted(completed, key=lambda transaction: transaction.date),
        tuple(sorted([*prices, *paid], key=lambda price: price.line)),
    )
    check_assertions(journal)
    return journal


def complete(transaction: Transaction) -> Transaction:
    """``transaction`` with the amount that was left out filled in.

    Raises:
        UnbalancedError: if more than one amount was left out, or if none was and the postings
            do not sum to zero.
    """
    elided = sum(posting.amount is None for posting in transaction.postings)
    if elided > 1:
        raise UnbalancedError("only one posting may leave its amount out", transaction.line)
    residual = Balance(
        posting.weight for posting in transaction.postings if posting.weight is not None
    )
    if not elided:
        if residual:
            raise UnbalancedError(f"postings are off by {residual}", transaction.line)
        return transaction
    postings: list[Posting] = []
    for posting in transaction.postings:
        if posting.amount is None:
            postings.extend(_absorb(posting, residual))
        else:
            postings.append(posting)
    return replace(transaction, postings=tuple(postings))


def _absorb(posting: Posting, residual: Balance) -> list[Posting]:
    """``posting`` once per unbalanced commodity; the last one carries the assertion."""
    needed = residual.amounts()
    if not needed:
        return [posting]
    filled = [replace(posting, amount=-amount, asserted=None) for amount in needed]
    filled[-1] = replace(filled[-1], asserted=posting.asserted)
    return filled


def check_assertions(journal: Journal) -> None:
    """Walks through ``journal`` and compares each asserted balance with the actual one.

    Raises:
        AssertionFailedError: at the first that differs.
    """
    balances: defaultdict[str, Balance] = defaultdict(Balance)
    for _, posting in journal.postings():
        balance = balances[posting.account]
        if posting.amount is not None:
            balance.add(posting.amount)
        if posting.asserted is None:
            continue
        actual = balance.of(posting.asserted.commodity)
        if actual != posting.asserted.quantity:
            raise AssertionFailedError(
                f"{posting.account} should hold {posting.asserted}, "
                f"but holds {Amount(actual, posting.asserted.commodity)}",
                posting.line,
            )
