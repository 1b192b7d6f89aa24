"""The command line: ``python -m inkwell [-o FILE] [FILE]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from inkwell import to_html


def main(argv: Sequence[str] | None = None) -> int:
    """Convert one file, or standard input, and return the exit status."""
    parser = argparse.ArgumentParser(prog="inkwell", description="Convert Markdown to HTML.")
    parser.add_argument("source", nargs="?", default="-", help="a file, or - for standard input")
    parser.add_argument("-o", "--output", type=Path, help="write here, not to standard output")
    options = parser.parse_args(argv)
    try:
        text = _read(options.source)
    except (OSError, UnicodeDecodeError) as error:
        print(f"inkwell: cannot read {options.source}: {error}", file=sys.stderr)
        return 1
    if options.output:
        options.output.write_text(to_html(text), encoding="utf-8")
    else:
        sys.stdout.write(to_html(text))
    return 0


def _read(source: str) -> str:
    return sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
