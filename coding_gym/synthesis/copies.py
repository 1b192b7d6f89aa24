"""Prints the paths of installed copies of the project's files; the script runs in the sandbox.

Standard input is a JSON list of the paths of the project's files.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator  # noqa: TC003 - the script has no other imports
from pathlib import Path

_MAX_COPIES = 8


def _copies(names: "list[str]") -> "Iterator[str]":
    digests = {_digest(Path(name)): name for name in names if Path(name).is_file()}
    sizes = {Path(name).stat().st_size for name in digests.values()} - {0}
    # An install without `-e` leaves copies in `build`.
    for folder in {sys.prefix, "build", *(p for p in sys.path if "-packages" in p)}:
        for parent, _, files in os.walk(folder):
            for file in files:
                path = Path(parent, file)
                if str(path) in digests.values() or not file.endswith(".py") or path.is_symlink():
                    continue
                if path.stat().st_size in sizes and _digest(path) in digests:
                    yield str(path)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    for copy in sorted(_copies(json.load(sys.stdin)))[:_MAX_COPIES]:
        print(copy)  # noqa: T201 - the output of the script
