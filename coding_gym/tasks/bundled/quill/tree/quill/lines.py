"""Positions as lines and columns."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from quill.edits import Edit
from quill.errors import PositionError


class Lines:
    """Where the lines of a text begin.

    Args:
        text: the text.
    """

    def __init__(self, text: str) -> None:
        self._starts = [0, *_behind_breaks(text, 0)]
        self._size = len(text)

    def __len__(self) -> int:
        return len(self._starts)

    def locate(self, position: int) -> tuple[int, int]:
        """Line and column of a position.

        Raises:
            PositionError: if it is not in the text.
        """
        if not 0 <= position <= self._size:
            raise PositionError(f"there is no position {position}")
        line = bisect_right(self._starts, position) - 1
        return line, position - self._starts[line]

    def position(self, line: int, column: int) -> int:
        """The position that is in a line, at a column.

        Raises:
            PositionError: if there is no such line, or it is shorter.
        """
        if not 0 <= line < len(self._starts):
            raise PositionError(f"there is no line {line}")
        is_last = line == len(self._starts) - 1
        end = self._size if is_last else self._starts[line + 1] - 1
        if not 0 <= column <= end - self._starts[line]:
            raise PositionError(f"there is no column {column} in line {line}")
        return self._starts[line] + column

    def follow(self, edit: Edit) -> None:
        """Takes note of an edit."""
        shift = len(edit.added) - len(edit.removed)
        first = bisect_right(self._starts, edit.start)
        last = bisect_left(self._starts, edit.end + 1)
        later = [start + shift for start in self._starts[last:]]
        self._starts[first:] = _behind_breaks(edit.added, edit.start) + later
        self._size += shift


def _behind_breaks(text: str, offset: int) -> list[int]:
    return [offset + i + 1 for i, character in enumerate(text) if character == "\n"]
