"""Templates on calls: ``argument``, ``method`` and ``call_result``."""

import ast
from collections.abc import Iterator
from itertools import pairwise

from coding_gym.repair.sites import Proposal, Site

_SISTERS = (
    ("strip", "lstrip", "rstrip"),
    ("lower", "casefold", "upper"),
    ("append", "extend"),
    ("find", "rfind", "index"),
    ("split", "rsplit", "partition", "rpartition"),
    ("startswith", "endswith"),
    ("setdefault", "get"),
)
_SISTER_FUNCTIONS = (("min", "max"), ("any", "all"))


def argument(site: Site) -> Iterator[Proposal]:
    """Swaps two neighbouring positional arguments, or drops the last one."""
    for node in site.nodes():
        if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
            continue
        spans = _argument_spans(site, node)
        text = site.source.text
        for left, right in pairwise(spans):
            first, between = text[left[0] : left[1]], text[left[1] : right[0]]
            second = text[right[0] : right[1]]
            if first != second:
                yield site.put(left[0], right[1], second + between + first, 0.9)
        if len(spans) > 1:
            yield site.put(spans[-2][1], spans[-1][1], "", 0.6)
        elif spans and not node.keywords:
            yield site.put(spans[0][0], spans[0][1], "", 0.3)


def method(site: Site) -> Iterator[Proposal]:
    """Calls a sister method or a sister builtin; exchanges ``get`` and ``[]``."""
    for node in site.nodes():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from _sisters(site, node.func, node.func.attr, _SISTERS)
            if node.func.attr == "get" and node.args and not node.keywords:
                owner = site.source.segment(node.func.value)
                key = site.source.segment(node.args[0])
                yield site.swap(node, f"{owner}[{key}]", 0.7)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from _sisters(site, node.func, node.func.id, _SISTER_FUNCTIONS)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            yield from _get(site, node)


def call_result(site: Site) -> Iterator[Proposal]:
    """Uses a result that is thrown away, or makes the call that a sister makes."""
    statement = site.statement
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        yield from _keep_result(site, statement.value)
    for node, sisters in _sister_groups(site):
        yield from _sister_calls(site, node, sisters)


def _argument_spans(site: Site, node: ast.Call) -> list[tuple[int, int]]:
    low, high = site.source.span(node.func)[1] + 1, site.source.span(node)[1] - 1
    if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
        return []
    return [site.source.outer(argument, low, high) for argument in node.args]


def _sisters(
    site: Site, function: ast.expr, name: str, families: tuple[tuple[str, ...], ...]
) -> Iterator[Proposal]:
    end = site.source.span(function)[1]
    for family in families:
        for other in family:
            if name in family and other != name:
                yield site.put(end - len(name), end, other, 0.8)


def _get(site: Site, node: ast.Subscript) -> Iterator[Proposal]:
    if not isinstance(node.slice, ast.Slice | ast.Tuple):
        owner, key = site.source.segment(node.value), site.source.segment(node.slice)
        yield site.swap(node, f"{owner}.get({key})", 0.5)


def _keep_result(site: Site, value: ast.Call) -> Iterator[Proposal]:
    start = site.source.span(value)[0]
    if isinstance(value.func, ast.Attribute):
        owner = value.func.value
        if isinstance(owner, ast.Name | ast.Attribute):
            yield site.put(start, start, f"{site.source.segment(owner)} = ", 1.0)
    elif len(value.args) > 0 and isinstance(value.args[0], ast.Name):
        yield site.put(start, start, f"{value.args[0].id} = ", 0.8)
    if site.function is not None:
        yield site.put(start, start, "return ", 0.8)


def _sister_groups(site: Site) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Yields each value with the values that stand beside it in the same role."""
    values = [v for s in site.block if (v := _value(s)) is not None]
    own = _value(site.statement)
    if own is not None:
        yield own, values
    for node in site.nodes():
        for group in _rows(node):
            for member in group:
                yield member, group


def _rows(node: ast.expr) -> Iterator[list[ast.expr]]:
    if isinstance(node, ast.Call):
        yield [*node.args, *(keyword.value for keyword in node.keywords)]
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        yield list(node.elts)
    elif isinstance(node, ast.Dict):
        yield list(node.values)
    elif isinstance(node, ast.Compare):
        yield [node.left, *node.comparators]


def _value(statement: ast.stmt) -> ast.expr | None:
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return | ast.AugAssign):
        return statement.value
    return None


def _sister_calls(site: Site, node: ast.expr, sisters: list[ast.expr]) -> Iterator[Proposal]:
    if isinstance(node, ast.Constant | ast.Starred):
        return
    text, atom = site.source.segment(node), site.source.atom(node)
    for sister in sisters:
        if sister is node or not isinstance(sister, ast.Call) or sister.keywords:
            continue
        function = sister.func
        if isinstance(function, ast.Attribute) and not sister.args:
            call = f".{function.attr}()"
            if not text.endswith(call):
                yield site.swap(node, atom + call, 0.8)
        elif isinstance(function, ast.Name) and len(sister.args) == 1:
            call = f"{function.id}("
            if not text.startswith(call):
                yield site.swap(node, f"{call}{text})", 0.8)
