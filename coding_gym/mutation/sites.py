"""Statements of a file with their context: the input of operators."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeGuard

from coding_gym import syntax
from coding_gym.mutation.source import Source
from coding_gym.source_text import Edit, apply_edits
from coding_gym.syntax import Function, first_line

Clause = ast.ExceptHandler | ast.match_case
Statement = ast.stmt | Clause
"""A node with a header: a statement, an ``except`` clause or a ``case`` clause."""

_BLOCKS = {"body", "orelse", "finalbody", "handlers", "cases"}
_NOT_CODE = {"annotation", "returns", "type_params"}
_SCOPE_NODES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


@dataclass(frozen=True, slots=True)
class Change:
    """One change that an operator proposes.

    Attributes:
        edits: The spans to replace.
        weight: Estimated probability, from 0 to 1, that this change is the repair, if the repair is
            a change of the same operator; 0 if the change is not a repair candidate.
        bug: The kind of bug that the change makes in a correct program; "" for no realistic bug.
    """

    edits: tuple[Edit, ...]
    weight: float = 0.0
    bug: str = ""


@dataclass(frozen=True)
class Scope:
    """The innermost function or class around a statement.

    Attributes:
        name: The dotted name; "" for a module.
        function: The function; None in a class or a module.
    """

    name: str = ""
    function: Function | None = None

    def inner(self, node: Statement) -> "Scope":
        """Returns the scope of the statements in the blocks of ``node``."""
        if isinstance(node, Function):
            return Scope(f"{self.name}.{node.name}".lstrip("."), node)
        if isinstance(node, ast.ClassDef):
            return Scope(f"{self.name}.{node.name}".lstrip("."))
        return self

    @cached_property
    def local_names(self) -> list[str]:
        """The function's parameters, then the variables of the function and of inner scopes."""
        names = dict.fromkeys(self._parameters)
        if self.function is not None:
            names |= dict.fromkeys(node.id for node in ast.walk(self.function) if is_bound_by(node))
        return [name for name in names if name not in ("self", "cls", "_")]

    @cached_property
    def first_bound(self) -> dict[str, tuple[int, int]]:
        """Line and column where the function, without inner scopes, first binds each name."""
        positions = dict.fromkeys(self._parameters, (0, 0))
        pending: list[ast.AST] = list(self.function.body) if self.function else []
        while pending:
            node = pending.pop()
            if isinstance(node, _SCOPE_NODES):
                continue
            if is_bound_by(node):
                position = node.lineno, node.col_offset
                positions[node.id] = min(position, positions.get(node.id, position))
            pending += ast.iter_child_nodes(node)
        return positions

    @cached_property
    def _parameters(self) -> list[str]:
        if self.function is None:
            return []
        arguments = self.function.args
        nodes = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        nodes += [node for node in (arguments.vararg, arguments.kwarg) if node is not None]
        return [node.arg for node in nodes]


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One statement and its position.

    Attributes:
        source: The file.
        node: The statement; operators edit its header, not the blocks inside it.
        block: All statements of the block that contains ``node``.
        index: The index of ``node`` in ``block``.
        owner: The compound statement that contains ``block``; None at the top of the file.
        scope: The innermost function or class around ``node``.
    """

    source: Source
    node: Statement
    block: Sequence[Statement]
    index: int
    owner: ast.stmt | None = None
    scope: Scope = field(default_factory=Scope)

    @property
    def lines(self) -> range:
        """The lines of the statement's header."""
        start = self.node.pattern if isinstance(self.node, ast.match_case) else self.node
        ends = [node.end_lineno or 0 for node in header_expressions(self.node)]
        if start is not self.node:
            ends.append(start.end_lineno or 0)
        return range(start.lineno, max([start.lineno, *ends]) + 1)

    @property
    def line(self) -> int:
        """The first line of the statement, without its decorators."""
        return self.lines.start

    def nodes(self) -> Iterator[ast.expr]:
        """Yields the expressions of the header that can be edited, parents first."""
        for node in header_expressions(self.node):
            if not self._is_in_f_string(node) or self.source.is_faithful(node):
                yield node

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Returns the parent of a node."""
        return self.source.parents.get(node)

    def whole_lines(self, statement: ast.stmt) -> tuple[int, int]:
        """Returns the span of all lines of a statement, with decorators and the last line end."""
        last = statement.end_lineno or statement.lineno
        return self.source.line_span(first_line(statement), last)

    def edit(self, start: int, end: int, text: str) -> Edit:
        """Returns an edit that replaces a span of the file."""
        return Edit(self.source.path, start, end, text)

    def swap(self, node: ast.expr, text: str, weight: float = 0.0, bug: str = "") -> Change:
        """Returns a change that replaces the text of a node."""
        return self.put(*self.source.span(node), text, weight, bug)

    def put(self, start: int, end: int, text: str, weight: float = 0.0, bug: str = "") -> Change:
        """Returns a change that replaces a span of the file."""
        return Change((self.edit(start, end, text),), weight, bug)

    def _is_in_f_string(self, node: ast.expr) -> bool:
        parent = self.parent(node)
        while isinstance(parent, ast.expr | ast.comprehension | ast.keyword):
            if isinstance(parent, ast.JoinedStr):
                return True
            parent = self.parent(parent)
        return False


def sites(source: Source) -> Iterator[Site]:
    """Yields every statement and clause in reading order, except imports and inert statements."""
    if source.tree.body:
        yield from _walk(Site(source, source.tree.body[0], source.tree.body, 0), source.tree.body)


def unit_around(site: Site, edits: Sequence[Edit] = ()) -> tuple[int, str, ast.Module] | None:
    """Returns the innermost function around a statement, else the whole file, with the edits.

    In large files, parsing only the function is faster.

    Returns:
        Offset in the file, text and syntax tree; None if the text does not parse.
    """
    source, statement = site.source, site.node
    start, end, is_indented = 0, len(source.text), False
    unit = statement if isinstance(statement, Function) else site.scope.function
    if unit is not None:
        start, end = source.line_span(first_line(unit), unit.end_lineno or unit.lineno)
        is_indented = unit.col_offset > 0
    text = apply_edits(source.text, edits, span=(start, end))
    try:
        return start, text, syntax.parse(("if 1:\n" if is_indented else "") + text)
    except (SyntaxError, ValueError):
        return None


def header_expressions(statement: Statement) -> Iterator[ast.expr]:
    """Yields the expressions of a statement's header in reading order, parents first.

    Inner blocks, annotations and type parameters are skipped.
    """
    for name, value in ast.iter_fields(statement):
        if name in _BLOCKS or name in _NOT_CODE:
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                yield from _expressions(node)


def is_bound_by(node: ast.AST) -> TypeGuard[ast.Name]:
    """Returns whether a node is a name that is assigned."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def is_inert(node: Statement) -> bool:
    """Returns whether a statement is only a string or an ellipsis."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str | type(...))
    )


def _walk(enclosing: Site, block: Sequence[Statement]) -> Iterator[Site]:
    for index, node in enumerate(block):
        if is_inert(node) or isinstance(node, ast.Import | ast.ImportFrom):
            continue
        site = replace(enclosing, node=node, block=block, index=index)
        yield site
        yield from _inner_sites(site)


def _inner_sites(site: Site) -> Iterator[Site]:
    node = site.node
    owner = site.owner if isinstance(node, Clause) else node
    inner = replace(site, owner=owner, scope=site.scope.inner(node))
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        yield from _walk(inner, getattr(node, name, None) or [])


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.stmt | ast.arg):
        return
    if isinstance(node, ast.expr):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _expressions(child)
