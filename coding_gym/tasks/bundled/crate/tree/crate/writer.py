"""Writing crates."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from crate.chunks import INDEX, MARK, VALUE, chunk, footer
from crate.encoding import encode
from crate.reader import load
from crate.texts import Texts


class Writer:
    """Adds values to a crate; to be used in a ``with`` block, at whose end they are written.

    Args:
        path: the file.
        size: how long the file is.
        texts: the texts that it shares.
        places: where its values are.
    """

    def __init__(self, path: Path, size: int, texts: Texts, places: dict[str, int]) -> None:
        self._path = path
        self._size = size
        self._texts = texts
        self._places = places
        self._new = b"" if size else MARK

    def add(self, name: str, value: Any) -> None:
        """Adds a value, in place of one that has that name.

        Raises:
            ValueTypeError: if it cannot be kept; then nothing is changed.
        """
        texts = self._texts.copy()
        content = encode(name, texts) + encode(value, texts)
        self._texts = texts
        self._places[name] = self._size + len(self._new)
        self._new += chunk(VALUE, content)

    def delete(self, name: str) -> None:
        """Takes a value out.

        Raises:
            KeyError: if there is none of that name.
        """
        del self._places[name]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            return
        index = self._size + len(self._new)
        content = encode(list(self._texts)) + encode(self._places)
        with self._path.open("r+b" if self._size else "wb") as file:
            file.seek(self._size)
            file.write(self._new + chunk(INDEX, content) + footer(index))


def create(path: str | Path) -> Writer:
    """A writer of a new crate, which takes the place of a file that is there."""
    return Writer(Path(path), 0, Texts(), {})


def append(path: str | Path) -> Writer:
    """A writer that goes on with a crate.

    Raises:
        CorruptError: if the file is damaged.
    """
    reader = load(path)
    return Writer(Path(path), Path(path).stat().st_size, reader.texts, reader.places)
