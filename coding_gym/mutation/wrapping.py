"""Operators that add or remove a call around a value: a copy, ``sorted`` or ``reversed``."""

import ast
from collections.abc import Iterator

from coding_gym.mutation.sites import Change, Site

_COPIES = (("list({})", 0.8), ("dict({})", 0.8), ("{}.copy()", 0.6), ("{}[:]", 0.3))
_COPIERS = {"list", "dict", "set", "tuple", "copy", "deepcopy"}
_COPY_METHODS = {"copy", "__copy__"}
_COPY_FUNCTIONS = {"copy.copy", "copy.deepcopy"}
_ADDERS = {"append", "add", "setdefault", "insert", "appendleft"}

_ORDER_FUNCTIONS = {"sorted", "reversed"}
_UNWRAPPABLE = (ast.Constant, ast.Starred, ast.JoinedStr, ast.GeneratorExp, ast.Lambda)


def copy(site: Site) -> Iterator[Change]:
    """Adds or removes a copy of a stored or returned value."""
    for node, weight in _stored_values(site):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            text = site.source.segment(node)
            for form, form_weight in _COPIES:
                yield site.swap(node, form.format(text), form_weight * weight)
    for node in site.nodes():
        value = _copied_value(site, node)
        if value is not None and not isinstance(value, _UNWRAPPABLE):
            yield site.swap(node, site.source.atom(value), bug="alias")


def order(site: Site) -> Iterator[Change]:
    """Replaces ``sorted`` or ``reversed`` by ``list``; or sorts a returned or iterated value."""
    statement = site.node
    for node in site.nodes():
        match node:
            case ast.Call(func=ast.Name(id=name), args=[inner]) if name in _ORDER_FUNCTIONS:
                if not isinstance(inner, _UNWRAPPABLE):
                    text = site.source.segment(inner)
                    yield site.swap(node, f"list({text})", 0.5, "loop")
    value = statement.value if isinstance(statement, ast.Return) else None
    value = statement.iter if isinstance(statement, ast.For) else value
    if value is not None and not isinstance(value, _UNWRAPPABLE):
        yield site.swap(value, f"sorted({site.source.segment(value)})", 0.8)


def _stored_values(site: Site) -> Iterator[tuple[ast.expr, float]]:
    """Yields the values that a statement stores, yields or returns, each with a weight."""
    statement = site.node
    if isinstance(statement, ast.Return | ast.Expr) and isinstance(statement.value, ast.Yield):
        if statement.value.value is not None:
            yield statement.value.value, 0.8
    elif isinstance(statement, ast.Return) and statement.value is not None:
        yield statement.value, 1.0
    elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        is_stored = any(isinstance(t, ast.Attribute | ast.Subscript) for t in targets)
        yield statement.value, 1.0 if is_stored else 0.5
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr in _ADDERS and call.args:
            yield call.args[-1], 0.9


def _copied_value(site: Site, node: ast.expr) -> ast.expr | None:
    """Returns the expression that a node copies; None if the node makes no copy."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[], keywords=[]):
            return owner if name in _COPY_METHODS else None
        case ast.Call(func=function, args=[inner], keywords=[]):
            is_copier = isinstance(function, ast.Name) and function.id in _COPIERS
            is_copied = is_copier or site.source.segment(function) in _COPY_FUNCTIONS
            return inner if is_copied else None
        case ast.Subscript(value=owner, slice=ast.Slice(lower=None, upper=None), ctx=ast.Load()):
            return owner
    return None
