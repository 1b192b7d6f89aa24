"""The text of a Python file: conversion of positions of `ast` to offsets, and edits."""

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
Node = ast.expr | ast.stmt | ast.ExceptHandler | ast.keyword


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """The replacement of a span of one file.

    Attributes:
        path: The file, relative to the tree.
        start: Offset of the first replaced character.
        end: Offset after the last replaced character; equal to ``start`` for an insertion.
        replacement: The new text.
    """

    path: str
    start: int
    end: int
    replacement: str


def apply_edits(
    text: str,
    edits: Iterable[Edit],
    *,
    span: tuple[int, int] | None = None,
    keeps_lines: bool = False,
) -> str:
    """Returns a text after edits.

    Args:
        text: The text.
        edits: The edits; their offsets refer to the unedited text.
        span: The part of the text to return; it must contain all edits. Default: the whole text.
        keeps_lines: Whether a replacement with fewer lines is followed by blank lines, so that
            later lines keep their numbers.

    Raises:
        ValueError: Two edits overlap.
    """
    first, limit = span or (0, len(text))
    text = text[:limit]
    for edit in sorted(edits, reverse=True):
        if edit.end > limit:
            raise ValueError(f"edits overlap at offset {edit.start}")
        after = text[edit.end :]
        if keeps_lines:
            num_missing = text.count("\n", edit.start, edit.end) - edit.replacement.count("\n")
            line_end = after.find("\n") + 1 or len(after)
            after = after[:line_end] + "\n" * num_missing + after[line_end:]
        text = text[: edit.start] + edit.replacement + after
        limit = edit.start
    return text[first:]


class SourceText:
    """The text of a Python file.

    Args:
        text: Its content with the original line ends.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines: list[str] = _LINE.findall(text)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """Returns the character offset of a line (from 1) and a UTF-8 byte column, as in `ast`."""
        text = self._lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode(errors="ignore"))
        return self._starts[line - 1] + column

    def line(self, number: int) -> str:
        """Returns a line, counted from 1, with its end."""
        return self._lines[number - 1]

    def line_at(self, offset: int) -> str:
        """Returns the line that contains an offset, with its end."""
        return self._lines[bisect_right(self._starts, offset) - 1]

    def line_span(self, first: int, last: int) -> tuple[int, int]:
        """Returns the span of the lines ``first`` to ``last`` (from 1), including line ends."""
        return self._starts[first - 1], self._starts[min(last, len(self._lines))]

    def first_comment(self, number: int) -> int:
        """Returns the first line of the comment directly above line ``number``, else ``number``."""
        while number > 1 and self.line(number - 1).lstrip().startswith("#"):
            number -= 1
        return number

    def span(self, node: Node) -> tuple[int, int]:
        """Returns the span of a node, without parentheses around it."""
        last, column = node.end_lineno, node.end_col_offset
        assert last is not None  # noqa: S101 - ast.parse sets both on every `Node`
        assert column is not None  # noqa: S101
        return self.offset(node.lineno, node.col_offset), self.offset(last, column)

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """Returns the node's text."""
        start, end = self.span(node)
        return self.text[start:end]

    def before(self, offset: int) -> str:
        """Returns the text between the start of the line and ``offset``."""
        start = max(self.text.rfind("\n", 0, offset), self.text.rfind("\r", 0, offset)) + 1
        return self.text[start:offset]
