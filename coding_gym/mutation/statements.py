"""Operators on statements: deletions, exchanged jumps, early returns and shorter loops."""

import ast
from collections.abc import Iterator

from coding_gym.mutation.sites import Change, Clause, Site
from coding_gym.syntax import Function, first_line

_EXITS = (ast.Raise, ast.Return, ast.Continue, ast.Break)


def statement(site: Site) -> Iterator[Change]:
    """Deletes a statement, or exchanges ``break`` and ``continue``."""
    node = site.node
    if isinstance(node, Clause):
        return
    if isinstance(node, ast.Break | ast.Continue):
        jump = "continue" if isinstance(node, ast.Break) else "break"
        yield site.put(*site.source.span(node), jump, 1.0, "loop")
    if isinstance(node, Function | ast.ClassDef) or not site.source.is_alone(node):
        return
    if not site.source.text.startswith("elif", site.source.span(node)[0]):
        yield _delete(site, node)


def return_early(site: Site) -> Iterator[Change]:
    """Inserts an early ``return`` of the variable that the function returns at its end."""
    node, function = site.node, site.scope.function
    if function is None or not isinstance(node, ast.Assign | ast.AugAssign | ast.Expr):
        return
    result = _result(function)
    is_last = site.owner is function and site.index >= len(site.block) - 2
    is_bound = site.scope.first_bound.get(result, (site.line + 1, 0)) < (site.line + 1, 0)
    indent = site.source.indent(node)
    if is_bound and not is_last and indent is not None and site.source.is_alone(node):
        end = site.whole_lines(node)[1]
        line = f"{indent}return {result}{site.source.newline}"
        yield site.put(end, end, line, bug="early_return")


def shorten_loop(site: Site) -> Iterator[Change]:
    """Makes a loop skip its first or last element."""
    if isinstance(site.node, ast.For) and isinstance(site.node.iter, ast.Name | ast.Attribute):
        text = site.source.segment(site.node.iter)
        for cut in ("[1:]", "[:-1]"):
            yield site.swap(site.node.iter, f"list({text}){cut}", bug="loop")


def _delete(site: Site, node: ast.stmt) -> Change:
    bug = _missing_bug(node)
    if len(site.block) == 1:
        return site.put(*site.source.span(node), "pass", 0.6, bug)
    first = site.source.first_comment(first_line(node))
    return site.put(*site.source.line_span(first, node.end_lineno or first), "", 0.6, bug)


def _missing_bug(node: ast.stmt) -> str:
    """Returns the kind of bug that a deletion makes; "" if tests rarely detect the bug."""
    if isinstance(node, ast.If) and not node.orelse and len(node.body) <= 2:
        return "removed_guard" if isinstance(node.body[-1], _EXITS) else ""
    stored_types = (ast.Attribute, ast.Subscript)
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    is_change = isinstance(node, ast.AugAssign | ast.Delete) or (
        isinstance(node, ast.Assign) and any(isinstance(t, stored_types) for t in node.targets)
    )
    return "removed_statement" if is_call or is_change else ""


def _result(function: Function) -> str:
    """Returns the name of the variable that a function returns at its end; "" for none."""
    last = function.body[-1]
    is_named = isinstance(last, ast.Return) and isinstance(last.value, ast.Name)
    return last.value.id if is_named else ""  # type: ignore[attr-defined]
