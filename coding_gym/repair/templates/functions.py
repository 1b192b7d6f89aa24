"""Templates on shared objects: ``default`` and ``copy``."""

import ast
from collections.abc import Iterator

from coding_gym.repair.sites import Proposal, Site, shown
from coding_gym.repair.source import FunctionNode
from coding_gym.repair.templates.constants import other_literals

_MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.Call)
_COPIES = (("list({})", 0.8), ("dict({})", 0.8), ("{}.copy()", 0.6), ("{}[:]", 0.3))
_STORING = {"append", "add", "setdefault", "insert", "appendleft"}


def default(site: Site) -> Iterator[Proposal]:
    """Makes a mutable default inside the function, or takes another constant as default."""
    if not isinstance(site.statement, FunctionNode):
        return
    for name, value in _defaults(site.statement.args):
        if isinstance(value, _MUTABLE):
            yield from _made_inside(site, site.statement, name, value)
        yield from other_literals(site, value)


def copy(site: Site) -> Iterator[Proposal]:
    """Copies what is stored or returned."""
    for node, weight in _kept(site):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            text = site.source.segment(node)
            for form, likely in _COPIES:
                yield site.swap(node, form.format(text), likely * weight)


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    for argument, value in zip(with_default, arguments.defaults, strict=True):
        yield argument.arg, value
    for argument, keyword_value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword_value is not None:
            yield argument.arg, keyword_value


def _made_inside(
    site: Site, function: FunctionNode, name: str, value: ast.expr
) -> Iterator[Proposal]:
    body = [s for s in function.body if not _is_docstring(s)]
    indent = site.source.indent(body[0]) if body else None
    if indent is None:
        return
    start = site.source.span(body[0])[0]
    text, line_end = site.source.segment(value), site.source.newline
    step = indent[function.col_offset :] or "    "
    made = f"if {name} is None:{line_end}{indent}{step}{name} = {text}{line_end}{indent}"
    edits = (site.edit(*site.source.span(value), "None"), site.edit(start, start, made))
    yield Proposal(edits, 1.0, f"make the default `{shown(text)}` of `{name}` inside")


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _kept(site: Site) -> Iterator[tuple[ast.expr, float]]:
    """Yields the values that a statement stores or returns."""
    statement = site.statement
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
        if isinstance(call.func, ast.Attribute) and call.func.attr in _STORING and call.args:
            yield call.args[-1], 0.9
