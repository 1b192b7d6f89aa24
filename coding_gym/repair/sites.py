"""The statements of a file with what surrounds them, as repair templates see them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from coding_gym.repair.source import (
    Edit,
    FunctionNode,
    Loop,
    Source,
    first_line,
    header_end,
    own_nodes,
)

_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Proposal:
    """One edit that a template proposes.

    Attributes:
        edits: The spans to replace.
        weight: How likely the template itself finds it, from 0 to 1.
        description: What it does, one line.
    """

    edits: tuple[Edit, ...]
    weight: float
    description: str


@dataclass(frozen=True, slots=True)
class Site:
    """One statement and where it stands.

    Attributes:
        source: The file.
        statement: The statement; templates edit its header, not the blocks inside it.
        block: The statements of its block, itself included.
        index: Its place in ``block``.
        owner: The compound statement whose block it is, or None at the top of the file.
        function: The innermost function around it.
        loop: The innermost loop around it, inside ``function``.
    """

    source: Source
    statement: ast.stmt
    block: list[ast.stmt]
    index: int
    owner: ast.stmt | None = None
    function: FunctionNode | None = None
    loop: Loop | None = None

    @property
    def lines(self) -> range:
        """The lines of the statement's header."""
        return range(self.statement.lineno, header_end(self.statement) + 1)

    def nodes(self) -> Iterator[ast.expr]:
        """Yields the expressions of the header whose text may be edited, parents first."""
        for node in own_nodes(self.statement):
            if not self._in_f_string(node) or self.source.is_faithful(node):
                yield node

    def whole_lines(self, statement: ast.stmt) -> tuple[int, int]:
        """Returns the span of a statement's lines, decorators and the last line's end included."""
        last = statement.end_lineno or statement.lineno
        return self.source.line_span(first_line(statement), last)

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Returns the node that holds ``node``."""
        return self.source.parents.get(node)

    def edit(self, start: int, end: int, text: str) -> Edit:
        """Returns an edit of this file."""
        return Edit(self.source.path, start, end, text)

    def swap(self, node: ast.expr, text: str, weight: float) -> Proposal:
        """Proposes other text in a node's place."""
        start, end = self.source.span(node)
        return self.put(start, end, text, weight)

    def put(self, start: int, end: int, text: str, weight: float) -> Proposal:
        """Proposes other text for a span."""
        old, new = shown(self.source.text[start:end]), shown(text)
        if not old:
            what = f"insert `{new}`"
        elif not new:
            what = f"drop `{old}`"
        else:
            what = f"`{old}` becomes `{new}`"
        return Proposal((self.edit(start, end, text),), weight, what)

    def _in_f_string(self, node: ast.expr) -> bool:
        parent = self.parent(node)
        while isinstance(parent, ast.expr | ast.comprehension | ast.keyword):
            if isinstance(parent, ast.JoinedStr):
                return True
            parent = self.parent(parent)
        return False


def shown(text: str) -> str:
    """Returns text as one short line."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def sites(source: Source) -> Iterator[Site]:
    """Yields every statement of a file in reading order, docstrings and imports left out."""
    root = Site(source, source.tree.body[0], source.tree.body, 0) if source.tree.body else None
    if root is not None:
        yield from _block(root, source.tree.body)


def _block(around: Site, block: list[ast.stmt]) -> Iterator[Site]:
    for index, statement in enumerate(block):
        site = replace(
            around,
            statement=statement,
            block=block,
            index=index,
        )
        if _is_docstring(statement) or isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        yield site
        yield from _inside(site)


def _inside(site: Site) -> Iterator[Site]:
    statement = site.statement
    inner = replace(site, owner=statement)
    if isinstance(statement, FunctionNode):
        inner = replace(inner, function=statement, loop=None)
    elif isinstance(statement, ast.ClassDef):
        inner = replace(inner, function=None, loop=None)
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        children = getattr(statement, name, None) or []
        if name == "body" and isinstance(statement, Loop):
            yield from _block(replace(inner, loop=statement), children)
        elif name in ("handlers", "cases"):
            for child in children:
                yield from _block(inner, child.body)
        else:
            yield from _block(inner, children)


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str | type(...))
    )
