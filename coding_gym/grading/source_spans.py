"""Places in a source file, as its parser counts them, and how to write something else there."""

import ast
from collections.abc import Sequence

Place = tuple[int, int]  # the number of a line, and a column in bytes


def start_of(node: ast.expr | ast.stmt) -> Place:
    """Returns where an expression begins."""
    return node.lineno, node.col_offset


def end_of(node: ast.expr | ast.stmt) -> Place:
    """Returns where an expression ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def text_of(lines: Sequence[str], node: ast.expr) -> str:
    """Returns the source of an expression, as parsed from a file's lines."""
    return between(lines, start_of(node), end_of(node))


def between(lines: Sequence[str], start: Place, end: Place) -> str:
    """Returns what lies between two places of a file, whose lines have their line ends."""
    text = "".join(lines[start[0] - 1 : end[0]]).encode()
    skipped = sum(len(line.encode()) for line in lines[start[0] - 1 : end[0] - 1])
    return text[start[1] : skipped + end[1]].decode()
