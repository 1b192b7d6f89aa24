"""A Python file as text and syntax tree; edits replace spans and keep other formatting."""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from coding_gym import syntax

_Node = TypeVar("_Node", bound=ast.AST)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")

_MAX_LITERAL = 40  # characters

# Nodes that never need parentheses inside an expression.
_ATOMS = (
    ast.Name,
    ast.Constant,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.JoinedStr,
)


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


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Returns ``text`` with all edits; their offsets refer to the unedited text.

    Raises:
        ValueError: Two edits overlap.
    """
    limit = len(text)
    for edit in sorted(edits, reverse=True):
        if edit.end > limit:
            raise ValueError(f"edits overlap at offset {edit.start}")
        text = text[: edit.start] + edit.replacement + text[edit.end :]
        limit = edit.start
    return text


class Source:
    """The text and the syntax tree of one file.

    Args:
        path: The file, relative to the tree.
        text: Its content with the original line ends.

    Attributes:
        tree: The module.
        newline: The line end that the file uses.

    Raises:
        SyntaxError: The text is not valid Python.
        ValueError: The text holds a NUL character.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.tree = syntax.parse(text)
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self._lines = _LINE.findall(text)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self.parents = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }

    @classmethod
    def from_bytes(cls, path: str, data: bytes) -> "Source | None":
        """Returns a parsed file; None if it is not UTF-8 or not valid Python.

        Args:
            path: The file, relative to the tree.
            data: Its content.
        """
        try:
            return cls(path, data.decode("utf-8"))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @cached_property
    def _by_type(self) -> dict[type[ast.AST], list[ast.AST]]:
        nodes: dict[type[ast.AST], list[ast.AST]] = {}
        for node in self.parents:
            nodes.setdefault(type(node), []).append(node)
        return nodes

    def all_of(self, kind: type[_Node]) -> list[_Node]:
        """Returns every node of a type, in the order of `ast.walk`."""
        return self._by_type.get(kind, [])  # type: ignore[return-value]

    def is_changed_by(self, edits: Iterable[Edit]) -> bool:
        """Whether any of the edits changes the text."""
        return any(self.text[e.start : e.end] != e.replacement for e in edits)

    @cached_property
    def step(self) -> str:
        """The white space of one level of indentation."""
        blocks = [getattr(node, "body", None) for node in self.tree.body]
        indents = [self.indent(block[0]) for block in blocks if isinstance(block, list)]
        return next(filter(None, indents), "    ")

    @cached_property
    def attributes(self) -> dict[tuple[str, bool], list[str]]:
        """Attribute names in the file, by the dump of their object and whether they are called."""
        names_by_key: dict[tuple[str, bool], dict[str, None]] = {}
        for node in self.all_of(ast.Attribute):
            if isinstance(node.value, ast.Name | ast.Attribute):
                parent = self.parents[node]
                is_called = isinstance(parent, ast.Call) and parent.func is node
                names_by_key.setdefault((ast.dump(node.value), is_called), {})[node.attr] = None
        return {key: list(names) for key, names in names_by_key.items()}

    @cached_property
    def literals(self) -> dict[type, list[tuple[str, int]]]:
        """Text and line of short literals, by type, without docstrings and f-strings."""
        by_type: dict[type, list[tuple[str, int]]] = {}
        for node in self.all_of(ast.Constant):
            parent = self.parents[node]
            if not isinstance(parent, ast.Expr | ast.JoinedStr | ast.FormattedValue):
                text = self.segment(node)
                if len(text) <= _MAX_LITERAL and "\n" not in text:
                    by_type.setdefault(type(node.value), []).append((text, node.lineno))
        return by_type

    def offset(self, line: int, column: int) -> int:
        """Converts a line (from 1) and a column in UTF-8 bytes, as in `ast`, to an offset."""
        text = self._lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode(errors="ignore"))
        return self._starts[line - 1] + column

    def line(self, number: int) -> str:
        """Returns a line, counted from 1, with its end."""
        text: str = self._lines[number - 1]
        return text

    def line_span(self, first: int, last: int) -> tuple[int, int]:
        """Returns the span of whole lines, the last line's end included."""
        return self._starts[first - 1], self._starts[min(last, len(self._lines))]

    def span(self, node: ast.expr | ast.stmt | ast.ExceptHandler | ast.keyword) -> tuple[int, int]:
        """Returns the span of a node, without parentheses around it."""
        last, column = node.end_lineno, node.end_col_offset
        assert last is not None  # noqa: S101 - ast.parse sets both on every such node
        assert column is not None  # noqa: S101
        return self.offset(node.lineno, node.col_offset), self.offset(last, column)

    def outer(self, node: ast.expr, low: int, high: int) -> tuple[int, int]:
        """Returns the span of a node with the parentheses around it that are in [low, high)."""
        start, end = self.span(node)
        while True:
            left, right = start - 1, end
            while left >= low and self.text[left].isspace():
                left -= 1
            while right < high and self.text[right].isspace():
                right += 1
            closed = left >= low and right < high
            if not closed or self.text[left] != "(" or self.text[right] != ")":
                return start, end
            start, end = left, right + 1

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """Returns the node's text."""
        start, end = self.span(node)
        return self.text[start:end]

    def atom(self, node: ast.expr) -> str:
        """Returns the node's text, in parentheses if it can need them as an operand."""
        text = self.segment(node)
        return text if isinstance(node, _ATOMS) else f"({text})"

    def before(self, offset: int) -> str:
        """Returns the text between the start of the line and ``offset``."""
        start = max(self.text.rfind("\n", 0, offset), self.text.rfind("\r", 0, offset)) + 1
        return self.text[start:offset]

    def indent(self, statement: ast.stmt) -> str | None:
        """Returns the indentation of a statement; None if it is not the first of its line."""
        text = self.before(self.span(statement)[0])
        return text if not text.strip() else None

    def is_alone(self, statement: ast.stmt) -> bool:
        """Whether the statement's lines contain no other statement."""
        end = self.span(statement)[1]
        rest = _LINE.match(self.text, end)
        after = rest.group().strip() if rest else ""
        return self.indent(statement) is not None and (not after or after.startswith("#"))

    def is_faithful(self, node: ast.expr) -> bool:
        """Whether the recorded span of a node inside an f-string contains that node."""
        try:
            parsed = syntax.parse_expression(self.segment(node))
        except (SyntaxError, ValueError):
            return False
        return ast.dump(parsed) == ast.dump(node)
