"""Replays a journal and prints its trades."""

from __future__ import annotations

import sys
from pathlib import Path

from bourse.book import Book
from bourse.errors import BourseError
from bourse.journal import replay
from bourse.prices import format_price


def main(arguments: list[str]) -> int:
    """Runs the command line and gives its exit status."""
    if len(arguments) != 1:
        print("usage: python -m bourse FILE", file=sys.stderr)
        return 2
    try:
        trades = replay(Path(arguments[0]).read_text("utf-8").splitlines(), Book())
    except (BourseError, OSError) as error:
        print(f"bourse: {error}", file=sys.stderr)
        return 1
    for trade in trades:
        print(trade.maker, trade.taker, trade.quantity, format_price(trade.price))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
