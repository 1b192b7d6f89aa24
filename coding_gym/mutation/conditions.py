"""Operators on conditions: comparisons, ``and``, ``or``, ``not`` and conditional expressions."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from coding_gym.mutation.sites import Change, Site

_COMPARE = re.compile(r"not\s+in\b|is\s+not\b|\bin\b|\bis\b|<=|>=|==|!=|<|>")
_BOOLEAN = re.compile(r"\b(?:and|or)\b")

# Replacements of each comparison, with weights; replacements in _BOUNDARY_BUGS change an edge case.
_COMPARISONS: dict[str, tuple[tuple[str, float], ...]] = {
    "<": (("<=", 1.0), (">", 0.5), (">=", 0.5), ("!=", 0.2)),
    "<=": (("<", 1.0), (">=", 0.5), (">", 0.5), ("==", 0.2)),
    ">": ((">=", 1.0), ("<", 0.5), ("<=", 0.5), ("!=", 0.2)),
    ">=": ((">", 1.0), ("<=", 0.5), ("<", 0.5), ("==", 0.2)),
    "==": (("!=", 0.6), ("<=", 0.4), (">=", 0.4), ("is", 0.2), ("<", 0.2), (">", 0.2)),
    "!=": (("==", 0.6), ("<", 0.4), (">", 0.4), ("is not", 0.2)),
    "in": (("not in", 0.6),),
    "not in": (("in", 0.6),),
    "is": (("==", 0.7), ("is not", 0.6)),
    "is not": (("!=", 0.7), ("is", 0.6)),
}
_BOUNDARY_BUGS = {("<", "<="), ("<=", "<"), (">", ">="), (">=", ">")}
_COMPARISON_BUGS = {("<", ">"), ("<=", ">="), ("==", "!="), ("in", "not in"), ("is", "is not")}


def compare(site: Site) -> Iterator[Change]:
    """Yields changes that each replace one comparison operator."""
    for node in site.nodes():
        if not isinstance(node, ast.Compare):
            continue
        for left, right in pairwise([node.left, *node.comparators]):
            operator = find_token(site, left, right, _COMPARE)
            if operator is not None:
                start, end, old = operator
                for new, weight in _COMPARISONS.get(old, ()):
                    yield site.put(start, end, new, weight, _comparison_bug(old, new))


def boolean(site: Site) -> Iterator[Change]:
    """Exchanges ``and`` and ``or``, removes an operand or a ``not``, or negates a condition."""
    for node in site.nodes():
        if isinstance(node, ast.BoolOp):
            yield from _exchange(site, node)
            yield from _drop_operand(site, node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield site.swap(node, site.source.atom(node.operand), 0.6, "boolean")
        elif isinstance(node, ast.IfExp):
            yield _swap_branches(site, node)
    for test in _conditions(site):
        if not _has_opposite(test):
            yield site.swap(test, f"not {site.source.atom(test)}", 0.6)


def find_token(
    site: Site, left: ast.expr, right: ast.expr, pattern: re.Pattern[str]
) -> tuple[int, int, str] | None:
    """Returns start, end and text of the operator between two operands; None if none is found."""
    start, end = site.source.span(left)[1], site.source.span(right)[0]
    between = site.source.text[start:end]
    match = pattern.search(between)
    if match is None or "#" in between:
        return None
    return start + match.start(), start + match.end(), " ".join(match.group().split())


def _comparison_bug(old: str, new: str) -> str:
    if (old, new) in _BOUNDARY_BUGS:
        return "boundary"
    return "comparison" if {(old, new), (new, old)} & _COMPARISON_BUGS else ""


def _exchange(site: Site, node: ast.BoolOp) -> Iterator[Change]:
    edits = []
    replacement = "or" if isinstance(node.op, ast.And) else "and"
    for left, right in pairwise(node.values):
        operator = find_token(site, left, right, _BOOLEAN)
        if operator is None:
            return
        edits.append(site.edit(operator[0], operator[1], replacement))
    yield Change(tuple(edits), 1.0, "boolean")


def _drop_operand(site: Site, node: ast.BoolOp) -> Iterator[Change]:
    low, high = site.source.span(node)
    spans = [site.source.outer(value, low, high) for value in node.values]
    for (start, _), (following, _) in pairwise(spans):
        yield site.put(start, following, "", 0.7, "boolean")
    yield site.put(spans[-2][1], spans[-1][1], "", 0.7, "boolean")


def _swap_branches(site: Site, node: ast.IfExp) -> Change:
    low, high = site.source.span(node)
    (start, end), (other_start, other_end) = (
        site.source.outer(value, low, high) for value in (node.body, node.orelse)
    )
    text = site.source.text
    condition = re.sub(r"\A(?=\w)|(?<=\w)\Z", " ", text[end:other_start])
    swapped_text = text[other_start:other_end] + condition + text[start:end]
    return site.put(start, other_end, swapped_text, 0.4, "branch")


def _conditions(site: Site) -> Iterator[ast.expr]:
    if isinstance(site.node, ast.If | ast.While):
        yield site.node.test
    if isinstance(site.node, ast.match_case) and site.node.guard is not None:
        yield site.node.guard
    for node in site.nodes():
        if isinstance(node, ast.IfExp):
            yield node.test
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            for generator in node.generators:
                yield from generator.ifs


def _has_opposite(test: ast.expr) -> bool:
    """Returns whether another edit already negates the condition."""
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
