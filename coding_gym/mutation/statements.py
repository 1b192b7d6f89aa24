"""Operators on whole statements: deleted, exchanged, or skipped by an early return."""

import ast
from collections.abc import Iterator

from coding_gym.mutation.sites import Change, Clause, Site
from coding_gym.syntax import Function, first_line

_LEAVING = (ast.Raise, ast.Return, ast.Continue, ast.Break)


def statement(site: Site) -> Iterator[Change]:
    """Deletes a statement, or takes the other jump of a loop."""
    own = site.node
    if isinstance(own, Clause):
        return
    if isinstance(own, ast.Break | ast.Continue):
        other = "continue" if isinstance(own, ast.Break) else "break"
        yield site.put(*site.source.span(own), other, 1.0, "loop")
    if isinstance(own, Function | ast.ClassDef) or not site.source.is_alone(own):
        return
    if not site.source.text.startswith("elif", site.source.span(own)[0]):
        yield _delete(site, own)


def return_early(site: Site) -> Iterator[Change]:
    """Returns the function's result behind a statement that others follow."""
    own, function = site.node, site.function
    if function is None or not isinstance(own, ast.Assign | ast.AugAssign | ast.Expr):
        return
    result = _result(function)
    is_last = site.owner is function and site.index >= len(site.block) - 2
    is_bound = site.scope.first_bound.get(result, (site.line + 1, 0)) < (site.line + 1, 0)
    indent = site.source.indent(own)
    if is_bound and not is_last and indent is not None and site.source.is_alone(own):
        end = site.whole_lines(own)[1]
        line = f"{indent}return {result}{site.source.newline}"
        yield site.put(end, end, line, bug="early_return")


def shorten_loop(site: Site) -> Iterator[Change]:
    """Leaves out the first or the last of what a loop goes over."""
    if isinstance(site.node, ast.For) and isinstance(site.node.iter, ast.Name | ast.Attribute):
        text = site.source.segment(site.node.iter)
        for cut in ("[1:]", "[:-1]"):
            yield site.swap(site.node.iter, f"list({text}){cut}", bug="loop")


def _delete(site: Site, own: ast.stmt) -> Change:
    bug = _missing_bug(own)
    if len(site.block) == 1:
        return site.put(*site.source.span(own), "pass", 0.6, bug)
    first = first_line(own)
    while first > 1 and site.source.line(first - 1).lstrip().startswith("#"):
        first -= 1  # a comment that tells of it
    return site.put(*site.source.line_span(first, own.end_lineno or first), "", 0.6, bug)


def _missing_bug(own: ast.stmt) -> str:
    """The kind of bug that the lack of a statement is; "" where tests would hardly find it."""
    if isinstance(own, ast.If) and not own.orelse and len(own.body) <= 2:
        return "removed_guard" if isinstance(own.body[-1], _LEAVING) else ""
    lasting = (ast.Attribute, ast.Subscript)
    is_call = isinstance(own, ast.Expr) and isinstance(own.value, ast.Call)
    is_change = isinstance(own, ast.AugAssign | ast.Delete) or (
        isinstance(own, ast.Assign) and any(isinstance(t, lasting) for t in own.targets)
    )
    return "removed_statement" if is_call or is_change else ""


def _result(function: Function) -> str:
    """The name that a function returns as its last act; "" for none."""
    last = function.body[-1]
    is_named = isinstance(last, ast.Return) and isinstance(last.value, ast.Name)
    return last.value.id if is_named else ""  # type: ignore[attr-defined]
