"""Operators on what is put around a value: copies, and builtins such as ``sorted``."""

import ast
from collections.abc import Iterator

from coding_gym.mutation.sites import Change, Site

_COPIES = (("list({})", 0.8), ("dict({})", 0.8), ("{}.copy()", 0.6), ("{}[:]", 0.3))
_COPIERS = {"list", "dict", "set", "tuple", "copy", "deepcopy"}
_COPY_METHODS = {"copy", "__copy__"}
_COPY_FUNCTIONS = {"copy.copy", "copy.deepcopy"}
_STORING = {"append", "add", "setdefault", "insert", "appendleft"}

_WRAPPERS = ("sorted", "set", "abs", "int", "str", "len")
# What losing a builtin from around a value makes wrong; `reversed` gives an iterator.
_LOST = {"sorted": "list({})", "reversed": "list({})"}
# Which builtins are worth trying where, each with its weight.
_ITERATED = (("sorted", 0.8), ("set", 0.4))
_VALUE = (("sorted", 0.6), ("int", 0.6), ("str", 0.6), ("abs", 0.5), ("set", 0.4), ("len", 0.3))
_OPERAND = (("int", 0.6), ("str", 0.6), ("abs", 0.6), ("len", 0.5))
_ARGUMENT = (("str", 0.6), ("int", 0.6), ("sorted", 0.4), ("abs", 0.4), ("set", 0.3), ("len", 0.3))

_UNWRAPPABLE = (ast.Constant, ast.Starred, ast.JoinedStr, ast.GeneratorExp, ast.Lambda)

_Wrappers = tuple[tuple[str, float], ...]


def copy(site: Site) -> Iterator[Change]:
    """Copies what is stored or returned, or uses the thing itself where it is copied."""
    for node, weight in _kept(site):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            text = site.source.segment(node)
            for form, likely in _COPIES:
                yield site.swap(node, form.format(text), likely * weight)
    for node in site.nodes():
        copied = _copied(site, node)
        if copied is not None and not isinstance(copied, _UNWRAPPABLE):
            yield site.swap(node, site.source.atom(copied), bug="alias")


def wrap(site: Site) -> Iterator[Change]:
    """Puts a builtin around an expression, or drops one."""
    for node in site.nodes():
        name = _wrapper(node)
        if isinstance(node, ast.Call) and name in _WRAPPERS:
            yield site.swap(node, site.source.atom(node.args[0]), 1.0)
        if isinstance(node, ast.Call) and name in _LOST:
            inner = site.source.segment(node.args[0])
            yield site.swap(node, _LOST[name].format(inner), bug="loop")
    for node, wrappers in _wrappable(site):
        if isinstance(node, _UNWRAPPABLE):
            continue
        text = site.source.segment(node)
        for name, weight in wrappers:
            if not text.startswith(f"{name}("):
                yield site.swap(node, f"{name}({text})", weight)


def _kept(site: Site) -> Iterator[tuple[ast.expr, float]]:
    """Yields the values that a statement stores or returns."""
    own = site.node
    if isinstance(own, ast.Return | ast.Expr) and isinstance(own.value, ast.Yield):
        if own.value.value is not None:
            yield own.value.value, 0.8
    elif isinstance(own, ast.Return) and own.value is not None:
        yield own.value, 1.0
    elif isinstance(own, ast.Assign | ast.AnnAssign) and own.value is not None:
        targets = own.targets if isinstance(own, ast.Assign) else [own.target]
        is_stored = any(isinstance(t, ast.Attribute | ast.Subscript) for t in targets)
        yield own.value, 1.0 if is_stored else 0.5
    elif isinstance(own, ast.Expr) and isinstance(own.value, ast.Call):
        call = own.value
        if isinstance(call.func, ast.Attribute) and call.func.attr in _STORING and call.args:
            yield call.args[-1], 0.9


def _copied(site: Site, node: ast.expr) -> ast.expr | None:
    """Returns what an expression is a copy of; None where it is no copy."""
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


def _wrapper(node: ast.expr) -> str:
    """Returns the name of the builtin that is called with one plain argument; "" for none."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            return "" if isinstance(inner, _UNWRAPPABLE) else name
    return ""


def _wrappable(site: Site) -> Iterator[tuple[ast.expr, _Wrappers]]:
    own = site.node
    if isinstance(own, ast.Return | ast.Assign | ast.AugAssign | ast.AnnAssign):
        if own.value is not None:
            yield own.value, _VALUE
    elif isinstance(own, ast.For | ast.AsyncFor):
        yield own.iter, _ITERATED
    for node in site.nodes():
        operands, wrappers = _operands(node)
        for operand in operands:
            yield operand, wrappers


def _operands(node: ast.expr) -> tuple[list[ast.expr], _Wrappers]:
    """Returns the parts of an expression that a builtin may go around."""
    match node:
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return [generator.iter for generator in node.generators], _ITERATED
        case ast.Compare():
            return [node.left, *node.comparators], _OPERAND
        case ast.BinOp():
            return [node.left, node.right], _OPERAND
        case ast.Call():
            return node.args, _ARGUMENT
        case ast.Subscript(slice=index) if not isinstance(index, ast.Slice | ast.Tuple):
            return [index], _OPERAND
    return [], ()
