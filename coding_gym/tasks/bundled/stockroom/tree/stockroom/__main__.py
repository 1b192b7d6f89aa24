"""The command line: ``python -m stockroom [--low] LIST [LIST ...]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from stockroom.errors import StockroomError
from stockroom.importer import read_list
from stockroom.inventory import Inventory
from stockroom.report import render


def main(argv: Sequence[str] | None = None) -> int:
    """Add up lists, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(prog="stockroom", description="Add up delivery lists.")
    parser.add_argument("lists", nargs="+", type=Path, metavar="LIST", help="CSV files")
    parser.add_argument("--low", action="store_true", help="show only what is below its minimum")
    options = parser.parse_args(argv)
    inventory = Inventory()
    try:
        for path in options.lists:
            inventory.add(read_list(path))
    except StockroomError as error:
        print(f"stockroom: {error}", file=sys.stderr)
        return 1
    sys.stdout.write(render(inventory, low_only=options.low))
    return 0


if __name__ == "__main__":
    sys.exit(main())
