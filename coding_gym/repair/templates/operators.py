"""Templates on operators: ``compare``, ``arithmetic`` and ``boolean``."""

import ast
import re
from collections.abc import Iterator

from coding_gym.repair.sites import Proposal, Site

_COMPARE = re.compile(r"not\s+in\b|is\s+not\b|\bin\b|\bis\b|<=|>=|==|!=|<|>")
_ARITHMETIC = re.compile(r"\*\*|//|[-+*/%]")
_BOOLEAN = re.compile(r"\b(?:and|or)\b")

# What each comparison becomes: its boundary first, then its opposite, then the rest.
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
_OPERATIONS: dict[str, tuple[tuple[str, float], ...]] = {
    "+": (("-", 1.0),),
    "-": (("+", 1.0),),
    "*": (("/", 0.6), ("//", 0.6)),
    "/": (("//", 1.0), ("*", 0.6)),
    "//": (("/", 1.0), ("%", 0.5), ("*", 0.3)),
    "%": (("//", 0.8), ("/", 0.4)),
}


def compare(site: Site) -> Iterator[Proposal]:
    """Replaces a comparison operator."""
    for node in site.nodes():
        if not isinstance(node, ast.Compare):
            continue
        left = node.left
        for right in node.comparators:
            found = _operator(site, left, right, _COMPARE)
            left = right
            if found is not None:
                start, end, operator = found
                for other, weight in _COMPARISONS.get(operator, ()):
                    yield site.put(start, end, other, weight)


def arithmetic(site: Site) -> Iterator[Proposal]:
    """Replaces an arithmetic operator, on numbers as far as the text tells."""
    for node in site.nodes():
        if isinstance(node, ast.BinOp) and not (_is_text(node.left) or _is_text(node.right)):
            yield from _operation(site, node.left, node.right)
    if isinstance(site.statement, ast.AugAssign) and not _is_text(site.statement.value):
        yield from _operation(site, site.statement.target, site.statement.value)


def boolean(site: Site) -> Iterator[Proposal]:
    """Exchanges ``and`` and ``or``, drops an operand, negates a condition."""
    for node in site.nodes():
        if isinstance(node, ast.BoolOp):
            yield from _exchange(site, node)
            yield from _drop_operand(site, node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield site.swap(node, site.source.segment(node.operand), 0.6)
    for test in _conditions(site):
        if not _has_opposite(test):
            yield site.swap(test, f"not {site.source.atom(test)}", 0.6)


def _operation(site: Site, left: ast.expr, right: ast.expr) -> Iterator[Proposal]:
    found = _operator(site, left, right, _ARITHMETIC)
    if found is not None:
        start, end, operator = found
        for other, weight in _OPERATIONS.get(operator, ()):
            yield site.put(start, end, other, weight)


def _exchange(site: Site, node: ast.BoolOp) -> Iterator[Proposal]:
    edits = []
    other = "or" if isinstance(node.op, ast.And) else "and"
    for left, right in zip(node.values, node.values[1:], strict=False):
        found = _operator(site, left, right, _BOOLEAN)
        if found is None:
            return
        edits.append(site.edit(found[0], found[1], other))
    old = "and" if other == "or" else "or"
    yield Proposal(tuple(edits), 1.0, f"`{old}` becomes `{other}`")


def _drop_operand(site: Site, node: ast.BoolOp) -> Iterator[Proposal]:
    low, high = site.source.span(node)
    spans = [site.source.outer(value, low, high) for value in node.values]
    for index in range(len(spans)):
        if index + 1 < len(spans):
            yield site.put(spans[index][0], spans[index + 1][0], "", 0.7)
        else:
            yield site.put(spans[index - 1][1], spans[index][1], "", 0.7)


def _conditions(site: Site) -> Iterator[ast.expr]:
    if isinstance(site.statement, ast.If | ast.While):
        yield site.statement.test
    for node in site.nodes():
        if isinstance(node, ast.IfExp):
            yield node.test
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            for generator in node.generators:
                yield from generator.ifs


def _has_opposite(test: ast.expr) -> bool:
    """Whether another edit already turns the condition around."""
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _operator(
    site: Site, left: ast.expr, right: ast.expr, pattern: re.Pattern[str]
) -> tuple[int, int, str] | None:
    """Returns where the operator between two operands stands, and the operator itself."""
    start, end = site.source.span(left)[1], site.source.span(right)[0]
    between = site.source.text[start:end]
    found = pattern.search(between)
    if found is None or "#" in between:
        return None
    return start + found.start(), start + found.end(), " ".join(found.group().split())


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )
