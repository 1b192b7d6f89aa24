"""Writes files that other processes read only when they are complete."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


def write_whole(path: Path, text: str) -> None:
    """Writes a text to a file by `whole_file`."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yields a hidden file that is then renamed, so that readers see only complete files.

    Raises:
        OSError: The file cannot be renamed.
    """
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
