"""Reading crates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crate.chunks import INDEX, VALUE, read_chunk, read_footer
from crate.cursor import Cursor
from crate.decoding import decode
from crate.errors import CorruptError
from crate.texts import Texts


class Reader(Mapping[str, Any]):
    """The values of a crate by name, in the order in which the names first came.

    Args:
        data: the content of the file.

    Raises:
        CorruptError: if the file is damaged.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        cursor = Cursor(read_chunk(data, read_footer(data), INDEX))
        self._texts = decode(cursor)
        self._places = decode(cursor)
        _check_index(self._texts, self._places)

    @property
    def texts(self) -> Texts:
        """The texts that the file shares."""
        return Texts(self._texts)

    @property
    def places(self) -> dict[str, int]:
        """Where the values are in the file."""
        return dict(self._places)

    def __getitem__(self, name: str) -> Any:
        cursor = Cursor(read_chunk(self._data, self._places[name], VALUE))
        if decode(cursor, self._texts) != name:
            raise CorruptError(f"there is another value in the place of {name!r}")
        value = decode(cursor, self._texts)
        if not cursor.is_at_end:
            raise CorruptError(f"there is more than a value in the place of {name!r}")
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def load(path: str | Path) -> Reader:
    """Reads a crate.

    Raises:
        CorruptError: if the file is damaged.
    """
    return Reader(Path(path).read_bytes())


def _check_index(texts: Any, places: Any) -> None:
    is_good = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    is_good = is_good and isinstance(places, dict)
    if not (is_good and all(type(place) is int and place >= 0 for place in places.values())):
        raise CorruptError("the index is damaged")
