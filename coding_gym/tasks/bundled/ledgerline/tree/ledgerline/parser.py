"""Journal text into transactions."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import replace

from ledgerline.amounts import Amount
from ledgerline.booking import book
from ledgerline.model import Journal, JournalError, Posting, Price, Transaction

_HEADER = re.compile(r"(?P<date>\d{4}-\d{2}-\d{2})\s+(?P<payee>\S.*)")
_PRICE = re.compile(
    r"P\s+(?P<date>\d{4}-\d{2}-\d{2})\s+(?P<commodity>[^\W\d]+|[$€£¥])\s+(?P<price>\S.*)"
)
_POSTING = re.compile(
    r"(?P<account>[^\s:]+(?:[ :][^\s:]+)*)"
    r"(?:(?:\s{2,}|\t)\s*(?P<amount>[^@=]*?)"
    r"(?:\s*@\s*(?P<price>[^=]*?))?"
    r"(?:\s*=\s*(?P<asserted>.*))?)?"
)


class ParseError(JournalError):
    """A line does not follow the journal format."""


def parse(text: str) -> Journal:
    """Reads and books a journal.

    Raises:
        JournalError: if it is malformed or does not balance.
    """
    return book(*parse_lines(text.splitlines()))


def parse_lines(lines: Iterable[str]) -> tuple[list[Transaction], list[Price]]:
    """Reads transactions as they are written, with left-out amounts still missing, and prices.

    Raises:
        ParseError: naming the first malformed line.
    """
    found: list[Transaction] = []
    prices: list[Price] = []
    for number, raw in enumerate(lines, start=1):
        line = raw.partition(";")[0].rstrip()
        if line.startswith((" ", "\t")):
            if not found:
                raise ParseError("posting outside of a transaction", number)
            posting = _posting(line.strip(), number)
            found[-1] = replace(found[-1], postings=(*found[-1].postings, posting))
        elif line.startswith("P "):
            prices.append(_price(line, number))
        elif line:
            found.append(_header(line, number))
    return found, prices


def _header(line: str, number: int) -> Transaction:
    match = _HEADER.fullmatch(line)
    if match is None:
        raise ParseError(f"expected a date and a payee, got {line!r}", number)
    return Transaction(_date(match["date"], number), match["payee"], line=number)


def _price(line: str, number: int) -> Price:
    match = _PRICE.fullmatch(line)
    if match is None:
        raise ParseError(f"expected a date, a commodity and its price, got {line!r}", number)
    try:
        price = Amount.parse(match["price"])
    except ValueError as error:
        raise ParseError(str(error), number) from error
    return Price(_date(match["date"], number), match["commodity"], price, number)


def _date(text: str, number: int) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise ParseError(f"no such date: {text}", number) from error


def _posting(line: str, number: int) -> Posting:
    match = _POSTING.fullmatch(line)
    if match is None:
        raise ParseError(f"malformed posting {line!r}", number)
    try:
        amount, price, asserted = (
            Amount.parse(match[part]) if match[part] else None
            for part in ("amount", "price", "asserted")
        )
    except ValueError as error:
        raise ParseError(str(error), number) from error
    if price is not None and amount is None:
        raise ParseError("a price needs an amount", number)
    return Posting(match["account"], amount, price, asserted, number)
