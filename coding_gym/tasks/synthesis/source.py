"""A source file as a syntax tree whose nodes know where they stand. Imported only on use (libcst).

Edits are bytes put in place of bytes, so that all they do not touch stays as it is.
"""

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

COMPOUND: tuple[type[cst.CSTNode], ...] = (
    cst.FunctionDef,
    cst.ClassDef,
    cst.If,
    cst.For,
    cst.While,
    cst.With,
    cst.Try,
    cst.TryStar,
)
"""Statements that have a body."""


class Edit(NamedTuple):
    """A replacement in a file.

    Attributes:
        start: First byte that is replaced.
        end: The byte after the last.
        new: What stands there instead.
    """

    start: int
    end: int
    new: bytes


def apply_edits(data: bytes, edits: Iterable[Edit]) -> bytes:
    """Returns ``data`` with edits that do not overlap."""
    for edit in sorted(edits, reverse=True):
        data = data[: edit.start] + edit.new + data[edit.end :]
    return data


class SourceFile:
    """A parsed file.

    Args:
        path: Where it is in the tree.
        data: Its content, in UTF-8.

    Raises:
        ValueError: It is not UTF-8.
        libcst.ParserSyntaxError: It is no Python that libcst knows.
    """

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self.module = cst.parse_module(data.decode("utf-8"))
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        self._spans = wrapper.resolve(ByteSpanPositionProvider)
        self._line_starts = [0]
        for at, byte in enumerate(data):
            if byte == 10:  # a line feed
                self._line_starts.append(at + 1)

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Returns the bytes that a node takes, without parentheses of its own around it."""
        found = self._spans[node]
        return found.start, found.start + found.length

    def line(self, at: int) -> int:
        """Returns the line, counted from 1, that a byte is in."""
        return bisect.bisect_right(self._line_starts, at)

    def lines(self, node: cst.CSTNode) -> tuple[int, int]:
        """Returns the first and the last line of a node."""
        start, end = self.span(node)
        return self.line(start), self.line(max(start, end - 1))

    def whole(self, node: cst.CSTNode) -> tuple[int, int]:
        """Returns the bytes that a node takes, with its parentheses."""
        start, end = self.span(node)
        left, right = getattr(node, "lpar", ()), getattr(node, "rpar", ())
        return self.span(left[0])[0] if left else start, self.span(right[-1])[1] if right else end

    def code(self, node: cst.CSTNode) -> str:
        """Returns a node as text, as it stands in the file, with its parentheses."""
        start, end = self.whole(node)
        return self.data[start:end].decode()

    def put(self, node: cst.CSTNode, other: cst.CSTNode | str) -> Edit:
        """Returns the edit that puts another node, or text, in place of one."""
        text = other if isinstance(other, str) else self.code(other)
        return Edit(*self.span(node), text.encode())

    def put_operator(self, old: cst.CSTNode, kind: type[cst.CSTNode]) -> Edit:
        """Returns the edit that puts another operator in place of one; white space stays."""
        return self.put(old, self.module.code_for_node(kind()).strip())

    def exchange(self, first: cst.CSTNode, second: cst.CSTNode) -> Edit:
        """Returns the edit that puts two nodes in each other's place."""
        (start, first_end), (second_start, end) = self.whole(first), self.whole(second)
        between = self.data[first_end:second_start].decode()
        return Edit(start, end, f"{self.code(second)}{between}{self.code(first)}".encode())

    def line_start(self, line: int) -> int:
        """Returns the first byte of a line, or the length of the file behind its last line."""
        starts = self._line_starts
        return starts[line - 1] if line <= len(starts) else len(self.data)

    def indent(self, line: int) -> bytes:
        """Returns the white space at the start of a line."""
        text = self.data[self.line_start(line) : self.line_start(line + 1)]
        return text[: len(text) - len(text.lstrip(b" \t"))]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands.

    Attributes:
        source: Its file.
        parents: The nodes around it, the innermost last.
        bound: In its function, each name that is bound and the byte where, in order; other
            functions inside are left out.
        attributes: Names that ``self`` has as attributes in the class around it.
    """

    source: SourceFile
    parents: Sequence[cst.CSTNode]
    bound: Sequence[tuple[str, int]] = ()
    attributes: Sequence[str] = ()

    @property
    def parent(self) -> cst.CSTNode:
        """The node around it."""
        return self.parents[-1]

    def nearest(self, *kinds: type[cst.CSTNode]) -> cst.CSTNode | None:
        """Returns the innermost node around it of one of these kinds."""
        return next((node for node in reversed(self.parents) if isinstance(node, kinds)), None)
