"""Goes through a syntax tree and asks every operator at every node. Imported on use (libcst)."""

from collections.abc import Callable, Collection, Iterator, Sequence

import libcst as cst

from coding_gym.tasks.synthesis.mutants import Site
from coding_gym.tasks.synthesis.operators import OPERATORS, Operator
from coding_gym.tasks.synthesis.source import COMPOUND, Place, SourceFile

# What no test of behaviour sees, or what would only break the import.
_SKIPPED = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom, cst.Assert, cst.TypeAlias)
_Table = dict[type[cst.CSTNode], list[tuple[str, Operator]]]


def walk(
    source: SourceFile, is_run: Callable[[int, int], bool], operators: Collection[str]
) -> Iterator[Site]:
    """Yields what can be broken; see `coding_gym.tasks.synthesis.mutants.find_sites`."""
    table: _Table = {}
    for name, kind, operator in OPERATORS:
        if not operators or name in operators:
            table.setdefault(kind, []).append((name, operator))
    yield from _Walk(source, is_run, table).visit(source.module, _Scope())


class _Scope:
    """What is known about the function and the class around a node."""

    def __init__(self, name: str = "", attributes: Sequence[str] = ()) -> None:
        self.name = name
        self.attributes = attributes
        self.bound: Sequence[tuple[str, int]] = ()

    def inner(self, name: str, attributes: Sequence[str] = ()) -> "_Scope":
        return _Scope(f"{self.name}.{name}".lstrip("."), attributes or self.attributes)


class _Walk:
    def __init__(
        self, source: SourceFile, is_run: Callable[[int, int], bool], table: _Table
    ) -> None:
        self._source, self._is_run, self._table = source, is_run, table
        self._parents: list[cst.CSTNode] = []

    def visit(self, node: cst.CSTNode, scope: _Scope) -> Iterator[Site]:
        """Yields the sites at and below a node."""
        if isinstance(node, _SKIPPED) or _is_not_code(node, self._source):
            return
        yield from self._sites(node, scope)
        if isinstance(node, cst.FunctionDef):
            scope = scope.inner(node.name.value)
            scope.bound = sorted(_bound_names(node, self._source), key=lambda pair: pair[1])
        elif isinstance(node, cst.ClassDef):
            scope = scope.inner(node.name.value, sorted(_attributes(node)))
        self._parents.append(node)
        for child in node.children:
            yield from self.visit(child, scope)
        self._parents.pop()

    def _sites(self, node: cst.CSTNode, scope: _Scope) -> Iterator[Site]:
        operators = self._table.get(type(node))
        if not operators or not self._parents:
            return
        first, last = self._statement_lines(node)
        if not self._is_run(first, last):
            return
        place = Place(self._source, tuple(self._parents), scope.bound, scope.attributes)
        for name, operator in operators:
            for edit in operator(node, place):
                if self._source.data[edit.start : edit.end] != edit.new:
                    yield Site(name, self._source.path, scope.name, first, last, edit)

    def _statement_lines(self, node: cst.CSTNode) -> tuple[int, int]:
        """The lines of the statement around a node, without the body where it has one."""
        for one in (node, *reversed(self._parents)):
            if isinstance(one, cst.SimpleStatementLine):
                return self._source.lines(one)
            if isinstance(one, (cst.ExceptHandler, *COMPOUND)):
                first, _ = self._source.lines(one)
                body_first, _ = self._source.lines(getattr(one, "body"))  # noqa: B009
                return first, max(first, body_first - 1)
        return self._source.lines(node)


def _is_not_code(node: cst.CSTNode, source: SourceFile) -> bool:
    """Whether a statement is a docstring, or only there for type checkers and packagers."""
    if isinstance(node, cst.If):
        return "TYPE_CHECKING" in source.code(node.test)
    if not isinstance(node, cst.SimpleStatementLine):
        return False
    small = node.body[0]
    if isinstance(small, cst.Expr):
        return isinstance(small.value, cst.SimpleString | cst.ConcatenatedString)
    if isinstance(small, cst.Assign) and isinstance(name := small.targets[0].target, cst.Name):
        return name.value.startswith("__") and name.value.endswith("__")
    return False


def _bound_names(function: cst.FunctionDef, source: SourceFile) -> Iterator[tuple[str, int]]:
    """The names that a function binds, with the byte where each is bound."""
    for param in _params(function.params):
        yield param.name.value, source.span(param.name)[0]
    todo: list[cst.CSTNode] = [function.body]
    while todo:
        node = todo.pop()
        if isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Lambda | cst.BaseComp):
            continue
        if isinstance(node, cst.AssignTarget | cst.For | cst.NamedExpr):
            for name in _target_names(node.target):
                yield name.value, source.span(name)[0]
        todo += node.children


def _params(params: cst.Parameters) -> Iterator[cst.Param]:
    yield from (*params.posonly_params, *params.params, *params.kwonly_params)
    for star in (params.star_arg, params.star_kwarg):
        if isinstance(star, cst.Param):
            yield star


def _target_names(target: cst.CSTNode) -> Iterator[cst.Name]:
    if isinstance(target, cst.Name):
        yield target
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _target_names(element.value)


def _attributes(owner: cst.ClassDef) -> set[str]:
    """The names after ``self.`` in a class."""
    found: set[str] = set()
    todo: list[cst.CSTNode] = [owner.body]
    while todo:
        node = todo.pop()
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
            found |= {node.attr.value} if node.value.value == "self" else set()
        todo += node.children
    return found
