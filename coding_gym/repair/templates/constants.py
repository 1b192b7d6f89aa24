"""Templates on literal values: ``off_by_one`` and ``constant``."""

import ast
from collections.abc import Iterator

from coding_gym.repair.sites import Proposal, Site
from coding_gym.repair.source import FunctionNode, Source

_MAX_TEXT = 40
_NEAREST = 3


def off_by_one(site: Site) -> Iterator[Proposal]:
    """Adds or subtracts 1 at an integer, a slice bound, a ``range`` bound, an index."""
    for node in site.nodes():
        value = whole_number(node)
        if value is not None and not _is_signed(site, node):
            yield site.swap(node, str(value + 1), 0.8)
            yield site.swap(node, str(value - 1), 0.8)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            if whole_number(node.right) == 1:
                yield site.swap(node, site.source.segment(node.left), 1.0)
        elif isinstance(node, ast.Subscript):
            yield from _subscript(site, node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from _counting(site, node, node.func.id)
        elif isinstance(node, ast.Compare):
            yield from _compared(site, node)


def constant(site: Site) -> Iterator[Proposal]:
    """Flips a literal, or takes another one of its kind from the same file."""
    for node in site.nodes():
        yield from other_literals(site, node)


def other_literals(site: Site, node: ast.expr) -> Iterator[Proposal]:
    """Proposes other literals in the place of one."""
    number = whole_number(node)
    if number is not None:
        if not _is_signed(site, node):
            for other in (0, 1, -1):
                if other != number and number in (0, 1, -1):
                    yield site.swap(node, str(other), 0.8)
            yield from _from_file(site, node, int)
        return
    if not isinstance(node, ast.Constant) or isinstance(site.parent(node), ast.JoinedStr):
        return
    if isinstance(node.value, bool):
        yield site.swap(node, str(not node.value), 1.0)
    elif node.value is None:
        yield site.swap(node, '""', 0.4)
    elif isinstance(node.value, str):
        yield site.swap(node, '""' if node.value else "None", 0.4)
        yield from _from_file(site, node, str)
    elif isinstance(node.value, float):
        yield from _from_file(site, node, float)


def whole_number(node: ast.AST) -> int | None:
    """Returns the value of an integer literal, with its sign, or None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = whole_number(node.operand)
        return None if inner is None or inner < 0 else -inner
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def _is_signed(site: Site, node: ast.expr) -> bool:
    parent = site.parent(node)
    return isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub)


def _subscript(site: Site, index: ast.expr) -> Iterator[Proposal]:
    if isinstance(index, ast.Slice):
        for bound in (index.lower, index.upper):
            yield from _shifted(site, bound, 0.9)
    elif not isinstance(index, ast.Tuple):
        yield from _shifted(site, index, 0.6)


def _counting(site: Site, node: ast.Call, name: str) -> Iterator[Proposal]:
    if name == "range":
        for bound in node.args[:2]:
            yield from _shifted(site, bound, 1.0)
        if len(node.args) == 1:
            start = site.source.span(node.args[0])[0]
            yield site.put(start, start, "1, ", 0.7)
    elif name == "enumerate" and len(node.args) == 1 and not node.keywords:
        end = site.source.span(node.args[0])[1]
        yield site.put(end, end, ", 1", 0.6)
    elif name == "len" and not isinstance(site.parent(node), ast.BinOp):
        yield from _shifted(site, node, 0.5)


def _compared(site: Site, node: ast.Compare) -> Iterator[Proposal]:
    ordered = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    if any(isinstance(op, ordered) for op in node.ops):
        for operand in node.comparators:
            yield from _shifted(site, operand, 0.4)


def _shifted(site: Site, node: ast.expr | None, weight: float) -> Iterator[Proposal]:
    """Proposes ``node + 1`` and ``node - 1`` for what may be a number and is not a literal."""
    if node is None or isinstance(node, ast.Constant) or whole_number(node) is not None:
        return
    if isinstance(node, ast.BinOp) and whole_number(node.right) == 1:
        return
    for shift in ("+ 1", "- 1"):
        yield site.swap(node, f"{site.source.atom(node)} {shift}", weight)


def _from_file(site: Site, node: ast.expr, kind: type) -> Iterator[Proposal]:
    own = site.source.segment(node)
    weight = 0.5
    for text in _nearest_literals(site.source, node.lineno, kind, own):
        yield site.swap(node, text, weight)
        weight *= 0.7


def _nearest_literals(source: Source, line: int, kind: type, own: str) -> list[str]:
    found: dict[str, int] = {}
    for node in source.parents:
        if isinstance(node, ast.Constant) and type(node.value) is kind and _is_plain(source, node):
            text = source.segment(node)
            if text != own and len(text) <= _MAX_TEXT and "\n" not in text:
                distance = abs(node.lineno - line)
                found[text] = min(distance, found.get(text, distance))
    return sorted(found, key=lambda text: (found[text], text))[:_NEAREST]


def _is_plain(source: Source, node: ast.Constant) -> bool:
    """Whether the literal is a value of its own: no docstring, no part of an f-string."""
    parent = source.parents[node]
    if isinstance(parent, ast.Expr | ast.JoinedStr | ast.FormattedValue):
        return False
    return not isinstance(parent, FunctionNode)
