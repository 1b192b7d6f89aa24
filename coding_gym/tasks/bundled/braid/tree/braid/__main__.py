"""The command line: ``braid diff``, ``braid patch`` and ``braid merge``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from braid import BraidError, apply, diff, merge


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status."""
    options = _parser().parse_args(argv)
    try:
        texts = [_read(path) for path in options.files]
        output, status = _run(options.command, options.files, texts)
    except (BraidError, OSError, UnicodeDecodeError) as error:
        print(f"braid: {error}", file=sys.stderr)
        return 2
    sys.stdout.write(output)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="braid", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, files in (("diff", "OLD NEW"), ("patch", "OLD PATCH"), ("merge", "BASE OURS THEIRS")):
        names = tuple(files.split())
        command = commands.add_parser(name)
        command.add_argument("files", nargs=len(names), metavar=names, type=Path)
    return parser


def _run(command: str, files: Sequence[Path], texts: Sequence[str]) -> tuple[str, int]:
    if command == "diff":
        found = diff(texts[0], texts[1], old_name=str(files[0]), new_name=str(files[1]))
        return found, 1 if found else 0
    if command == "patch":
        return apply(texts[1], texts[0]), 0
    result = merge(*texts, our_name=str(files[1]), their_name=str(files[2]))
    return result.text, 1 if result.conflicts else 0


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


if __name__ == "__main__":
    sys.exit(main())
