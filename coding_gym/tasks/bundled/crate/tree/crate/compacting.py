"""Giving back room."""

from __future__ import annotations

from pathlib import Path

from crate.reader import load
from crate.writer import create


def compact(path: str | Path) -> int:
    """Writes a crate anew with nothing but what is in it now; says how many bytes that saves.

    Raises:
        CorruptError: if the file is damaged; then it stays as it is.
    """
    path = Path(path)
    size = path.stat().st_size
    reader = load(path)
    fresh = path.with_name(path.name + ".new")
    with create(fresh) as writer:
        for name, value in reader.items():
            writer.add(name, value)
    fresh.replace(path)
    return size - path.stat().st_size
