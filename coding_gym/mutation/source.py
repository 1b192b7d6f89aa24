"""A Python file: its text and its syntax tree."""

import ast
from collections.abc import Iterable
from functools import cached_property
from typing import TypeVar

from coding_gym import syntax
from coding_gym.source_text import Edit, SourceText

_Node = TypeVar("_Node", bound=ast.AST)

_MAX_LITERAL_CHARS = 40

# Nodes that never need parentheses inside an expression.
_ATOMS = (
    *(ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Dict, ast.Set),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.JoinedStr),
)


class Source(SourceText):
    """The text and the syntax tree of one file.

    Args:
        path: The file, relative to the tree.
        text: The content of the file with the original line ends.

    Attributes:
        tree: The module.
        newline: The line end that the file uses.

    Raises:
        SyntaxError: The text is not valid Python.
        ValueError: The text contains a NUL character.
    """

    def __init__(self, path: str, text: str) -> None:
        super().__init__(text)
        self.path = path
        self.tree = syntax.parse(text)
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.parents = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }

    @classmethod
    def from_bytes(cls, path: str, data: bytes) -> "Source | None":
        """Returns a parsed file; None if it is not UTF-8 or not valid Python.

        Args:
            path: The file, relative to the tree.
            data: The content of the file.
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
        """Returns whether any of the edits changes the text."""
        return any(self.text[e.start : e.end] != e.replacement for e in edits)

    @cached_property
    def step(self) -> str:
        """The white space of one level of indentation."""
        blocks = [getattr(node, "body", None) for node in self.tree.body]
        indents = [self.indent(block[0]) for block in blocks if isinstance(block, list)]
        return next(filter(None, indents), "    ")

    @cached_property
    def attributes(self) -> dict[tuple[str, bool], list[str]]:
        """Attribute names by the `ast.dump` of the object and whether the attribute is called."""
        names_by_key: dict[tuple[str, bool], dict[str, None]] = {}
        for node in self.all_of(ast.Attribute):
            if isinstance(node.value, ast.Name | ast.Attribute):
                key = ast.dump(node.value), self.is_called(node)
                names_by_key.setdefault(key, {})[node.attr] = None
        return {key: list(names) for key, names in names_by_key.items()}

    def is_called(self, node: ast.expr) -> bool:
        """Returns whether an expression is the function of a call."""
        parent = self.parents[node]
        return isinstance(parent, ast.Call) and parent.func is node

    @cached_property
    def literals(self) -> dict[type, list[tuple[str, int]]]:
        """Text and line of each short literal, by type; docstrings and f-strings are excluded."""
        by_type: dict[type, list[tuple[str, int]]] = {}
        for node in self.all_of(ast.Constant):
            parent = self.parents[node]
            if not isinstance(parent, ast.Expr | ast.JoinedStr | ast.FormattedValue):
                text = self.segment(node)
                if len(text) <= _MAX_LITERAL_CHARS and "\n" not in text:
                    by_type.setdefault(type(node.value), []).append((text, node.lineno))
        return by_type

    def outer(self, node: ast.expr, low: int, high: int) -> tuple[int, int]:
        """Returns the span of a node and of the parentheses around it within [low, high)."""
        start, end = self.span(node)
        while True:
            left, right = start - 1, end
            while left >= low and self.text[left].isspace():
                left -= 1
            while right < high and self.text[right].isspace():
                right += 1
            is_inside = left >= low and right < high
            if not is_inside or self.text[left] != "(" or self.text[right] != ")":
                return start, end
            start, end = left, right + 1

    def atom(self, node: ast.expr) -> str:
        """Returns the node's text, in parentheses if the node may need them as an operand."""
        text = self.segment(node)
        return text if isinstance(node, _ATOMS) else f"({text})"

    def indent(self, statement: ast.stmt) -> str | None:
        """Returns the indentation of a statement; None if it is not first on its line."""
        text = self.before(self.span(statement)[0])
        return text if not text.strip() else None

    def is_alone(self, statement: ast.stmt) -> bool:
        """Returns whether the statement's lines contain no other statement."""
        end = self.span(statement)[1]
        line_end = self.line_span(1, statement.end_lineno or statement.lineno)[1]
        after = self.text[end:line_end].strip()
        return self.indent(statement) is not None and (not after or after.startswith("#"))

    def is_faithful(self, node: ast.expr) -> bool:
        """Returns whether the recorded span of a node is correct; in f-strings it can be wrong."""
        try:
            parsed = syntax.parse_expression(self.segment(node))
        except (SyntaxError, ValueError):
            return False
        return ast.dump(parsed) == ast.dump(node)
