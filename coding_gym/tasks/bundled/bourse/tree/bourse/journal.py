"""Journals: what happened on a day, one line each."""

from __future__ import annotations

from collections.abc import Iterable

from bourse.book import Book
from bourse.errors import BourseError, JournalError
from bourse.model import Side, Trade
from bourse.prices import parse_price


def replay(lines: Iterable[str], book: Book) -> list[Trade]:
    """Does what a journal says, and gives the trades.

    Raises:
        JournalError: if a line cannot be read or done; it names the line.
    """
    trades: list[Trade] = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            book.now = _seconds(words[0])
            trades += _do(words[1:], book)
        except ValueError as error:
            raise JournalError(f"line {number}: {error}") from error
    return trades


def _seconds(text: str) -> int:
    hours, minutes, seconds = (int(part) for part in text.split(":"))
    return (hours * 60 + minutes) * 60 + seconds


def _do(words: list[str], book: Book) -> list[Trade]:
    match words:
        case ["buy" | "sell" as side, name, quantity, price]:
            return book.submit(name, Side(side), parse_price(price), int(quantity))
        case ["amend", name, quantity, price]:
            return book.amend(name, quantity=int(quantity), price=parse_price(price))
        case ["cancel", name]:
            book.cancel(name)
            return []
    raise BourseError(f"nothing is known about {' '.join(words)!r}")
