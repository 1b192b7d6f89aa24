"""The template ``wrap``: a builtin around an expression, or dropped from around it."""

import ast
from collections.abc import Iterator

from coding_gym.repair.sites import Proposal, Site

_WRAPPERS = ("sorted", "set", "abs", "int", "str", "len")

# Which builtins are worth trying where, each with its weight.
_ITERATED = (("sorted", 0.8), ("set", 0.4))
_VALUE = (("sorted", 0.6), ("int", 0.6), ("str", 0.6), ("abs", 0.5), ("set", 0.4), ("len", 0.3))
_OPERAND = (("int", 0.6), ("str", 0.6), ("abs", 0.6), ("len", 0.5))
_ARGUMENT = (("str", 0.6), ("int", 0.6), ("sorted", 0.4), ("abs", 0.4), ("set", 0.3), ("len", 0.3))


_UNWRAPPABLE = (ast.Constant, ast.Starred, ast.JoinedStr, ast.GeneratorExp, ast.Lambda)

_Wrappers = tuple[tuple[str, float], ...]


def wrap(site: Site) -> Iterator[Proposal]:
    """Puts a builtin around an expression, or drops one."""
    for node in site.nodes():
        if isinstance(node, ast.Call) and _is_wrapper(node):
            yield site.swap(node, site.source.atom(node.args[0]), 1.0)
    for node, wrappers in _places(site):
        if isinstance(node, _UNWRAPPABLE):
            continue
        text = site.source.segment(node)
        for name, weight in wrappers:
            if not text.startswith(f"{name}("):
                yield site.swap(node, f"{name}({text})", weight)


def _is_wrapper(node: ast.Call) -> bool:
    is_known = isinstance(node.func, ast.Name) and node.func.id in _WRAPPERS
    return is_known and len(node.args) == 1 and not isinstance(node.args[0], _UNWRAPPABLE)


def _places(site: Site) -> Iterator[tuple[ast.expr, _Wrappers]]:
    statement = site.statement
    if isinstance(statement, ast.Return | ast.Assign | ast.AugAssign | ast.AnnAssign):
        if statement.value is not None:
            yield statement.value, _VALUE
    elif isinstance(statement, ast.For | ast.AsyncFor):
        yield statement.iter, _ITERATED
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
