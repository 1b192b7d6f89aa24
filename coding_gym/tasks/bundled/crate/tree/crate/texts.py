"""Texts that are written once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_SHORTEST = 4


class Texts:
    """The shared texts of a file, which have numbers in the order in which they first came.

    Args:
        known: the texts that are in the file already.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._numbers = {text: number for number, text in enumerate(known)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def number(self, text: str) -> int | None:
        """The number of a text that has been written; None if it has to be written now."""
        found = self._numbers.get(text)
        if found is None and len(text) >= _SHORTEST:
            self._numbers[text] = len(self._numbers)
        return found

    def copy(self) -> Texts:
        """These texts, to go on with."""
        return Texts(self)
