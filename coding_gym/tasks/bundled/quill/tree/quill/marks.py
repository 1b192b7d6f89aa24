"""Marks: positions that have names and move with the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quill.edits import Edit


@dataclass(slots=True, eq=False)
class Mark:
    """A position, and whether it goes behind what is inserted there."""

    position: int
    leans_right: bool


class Marks:
    """The marks of a document."""

    def __init__(self) -> None:
        self._marks: dict[str, Mark] = {}

    def positions(self) -> dict[str, int]:
        """Where the marks are, by name."""
        return {name: mark.position for name, mark in self._marks.items()}

    def set(self, name: str, mark: Mark) -> None:
        """Sets a mark, in place of one that has that name."""
        self._marks[name] = mark

    def remove(self, name: str) -> None:
        """Takes a mark out.

        Raises:
            KeyError: if there is none of that name.
        """
        del self._marks[name]

    def follow(self, edit: Edit) -> dict[Mark, int]:
        """Moves the marks as an edit wants; says where those had been that it touched."""
        touched = {}
        for mark in self._marks.values():
            if edit.start <= mark.position <= edit.end:
                touched[mark] = mark.position
            mark.position = edit.moved(mark.position, leans_right=mark.leans_right)
        return touched

    def put_back(self, places: Mapping[Mark, int]) -> None:
        """Moves marks to where they had been; those that are no longer set do not matter."""
        for mark, position in places.items():
            mark.position = position

    def all(self) -> dict[str, tuple[Mark, int]]:
        """Which marks are set, and where."""
        return {name: (mark, mark.position) for name, mark in self._marks.items()}

    def restore(self, marks: Mapping[str, tuple[Mark, int]]) -> None:
        """Sets those marks, and no others."""
        self._marks = {name: mark for name, (mark, _) in marks.items()}
        self.put_back(dict(marks.values()))
