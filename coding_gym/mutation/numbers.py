"""Operators on numbers: arithmetic, and off-by-one changes of integers, bounds and indices."""

import ast
import re
from collections.abc import Iterator

from coding_gym.mutation.conditions import find_token
from coding_gym.mutation.sites import Change, Site

_ARITHMETIC = re.compile(r"\*\*|//|<<|>>|[-+*/%&|]")
_OPERATIONS: dict[str, tuple[tuple[str, float], ...]] = {
    "+": (("-", 1.0),),
    "-": (("+", 1.0),),
    "*": (("/", 0.6), ("//", 0.6)),
    "/": (("//", 1.0), ("*", 0.6)),
    "//": (("/", 1.0), ("%", 0.5), ("*", 0.3)),
    "%": (("//", 0.8), ("/", 0.4)),
    "<<": ((">>", 0.8),),
    ">>": (("<<", 0.8),),
    "&": (("|", 0.8),),
    "|": (("&", 0.8),),
}


def arithmetic(site: Site) -> Iterator[Change]:
    """Replaces an arithmetic operator, unless an operand is a string literal."""
    for node in site.nodes():
        if isinstance(node, ast.BinOp) and not (_is_text(node.left) or _is_text(node.right)):
            yield from _change_token(site, node.left, node.right)
    statement = site.node
    if isinstance(statement, ast.AugAssign):
        if not _is_text(statement.value):
            yield from _change_token(site, statement.target, statement.value)
        start, end = site.source.span(statement.target)[1], site.source.span(statement.value)[0]
        if "#" not in site.source.text[start:end]:
            equals = site.source.text.index("=", start)
            yield site.put(start, equals + 1, " =", bug="arithmetic")


def off_by_one(site: Site) -> Iterator[Change]:
    """Changes an integer, a bound of a slice or ``range``, or an index by 1."""
    for node in site.nodes():
        value = whole_number(node)
        if value is not None and not is_signed(site, node):
            bug = _number_bug(site, node)
            yield site.swap(node, str(value + 1), 0.8, bug)
            yield site.swap(node, str(value - 1), 0.8, bug)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            if whole_number(node.right) == 1:
                yield site.swap(node, site.source.segment(node.left), 1.0, "arithmetic")
        elif isinstance(node, ast.Subscript):
            yield from _shift_index(site, node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from _shift_counts(site, node, node.func.id)
        elif isinstance(node, ast.Compare):
            yield from _shift_compared(site, node)


def whole_number(node: ast.AST) -> int | None:
    """Returns the value of an integer literal with its sign; None for other nodes."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = whole_number(node.operand)
        return None if inner is None or inner < 0 else -inner
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def is_signed(site: Site, node: ast.expr) -> bool:
    """Returns whether a number has a minus sign."""
    parent = site.parent(node)
    return isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub)


def _change_token(site: Site, left: ast.expr, right: ast.expr) -> Iterator[Change]:
    location = find_token(site, left, right, _ARITHMETIC)
    if location is not None:
        start, end, operator = location
        for other, weight in _OPERATIONS.get(operator, ()):
            yield site.put(start, end, other, weight, "arithmetic")


def _number_bug(site: Site, node: ast.expr) -> str:
    parent = site.parent(node)
    if isinstance(parent, ast.Slice | ast.Subscript):
        return "slice"
    return "default" if isinstance(parent, ast.arguments) else "constant"


def _shift_index(site: Site, index: ast.expr) -> Iterator[Change]:
    if isinstance(index, ast.Slice):
        for bound in (index.lower, index.upper):
            yield from _shifted(site, bound, 0.9, "slice")
            if index.lower is not None and index.upper is not None and bound is not None:
                yield site.swap(bound, "", bug="slice")
    elif not isinstance(index, ast.Tuple):
        yield from _shifted(site, index, 0.6, "slice" if isinstance(index, ast.BinOp) else "")


def _shift_counts(site: Site, node: ast.Call, name: str) -> Iterator[Change]:
    if name == "range":
        for bound in node.args[:2]:
            yield from _shifted(site, bound, 1.0, "loop")
        if len(node.args) == 1:
            start = site.source.span(node.args[0])[0]
            yield site.put(start, start, "1, ", 0.7, "loop")
    elif name == "enumerate" and len(node.args) == 1 and not node.keywords:
        end = site.source.span(node.args[0])[1]
        yield site.put(end, end, ", 1", 0.6, "loop")
    elif name == "len" and not isinstance(site.parent(node), ast.BinOp):
        yield from _shifted(site, node, 0.5)


def _shift_compared(site: Site, node: ast.Compare) -> Iterator[Change]:
    order_operators = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    if any(isinstance(op, order_operators) for op in node.ops):
        for operand in node.comparators:
            yield from _shifted(site, operand, 0.4)


def _shifted(site: Site, node: ast.expr | None, weight: float, bug: str = "") -> Iterator[Change]:
    """Yields ``node + 1`` and ``node - 1`` for an expression that is not a literal."""
    if node is None or isinstance(node, ast.Constant) or whole_number(node) is not None:
        return
    if isinstance(node, ast.BinOp) and whole_number(node.right) == 1:
        return
    for shift in ("+ 1", "- 1"):
        yield site.swap(node, f"{site.source.atom(node)} {shift}", weight, bug)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )
