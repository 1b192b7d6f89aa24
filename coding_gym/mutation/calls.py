"""Operators on calls: they change arguments, keywords and method names."""

import ast
from collections.abc import Iterator
from itertools import pairwise

from coding_gym.mutation.sites import Change, Site

_METHODS = (
    ("strip", "lstrip", "rstrip"),
    ("lower", "casefold", "upper"),
    ("title", "capitalize"),
    ("append", "extend"),
    ("find", "rfind", "index", "rindex"),
    ("split", "rsplit", "partition", "rpartition"),
    ("startswith", "endswith"),
    ("removeprefix", "removesuffix"),
    ("ljust", "rjust"),
    ("isdigit", "isalpha", "isalnum", "isspace"),
    ("isupper", "islower"),
    ("setdefault", "get"),
)
_FUNCTIONS = (("min", "max"), ("any", "all"))
# Only for repairs: as bugs, most of these methods return the same result or raise immediately.
_NO_BUGS = {"casefold", "partition", "rpartition", "setdefault", "get"}


def argument(site: Site) -> Iterator[Change]:
    """Swaps two neighbouring positional arguments, or removes the last positional argument."""
    for node in site.nodes():
        if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
            continue
        spans = _argument_spans(site, node)
        text = site.source.text
        for left, right in pairwise(spans):
            first, between = text[left[0] : left[1]], text[left[1] : right[0]]
            second = text[right[0] : right[1]]
            if first != second:
                swapped_text = second + between + first
                yield site.put(left[0], right[1], swapped_text, 0.9, "argument_order")
        if len(spans) > 1:
            yield site.put(spans[-2][1], spans[-1][1], "", 0.6, "missing_argument")
        elif spans and not node.keywords:
            yield site.put(spans[0][0], spans[0][1], "", 0.3)


def keyword(site: Site) -> Iterator[Change]:
    """Removes a keyword argument, or negates a boolean keyword argument."""
    for node in site.nodes():
        if isinstance(node, ast.Call):
            for argument in node.keywords:
                yield from _change_keyword(site, node, argument)


def method(site: Site) -> Iterator[Change]:
    """Replaces a method or builtin function by a similar one, such as ``strip`` by ``lstrip``."""
    for node in site.nodes():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from _siblings(site, node.func, node.func.attr, _METHODS, "wrong_method")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from _siblings(site, node.func, node.func.id, _FUNCTIONS)


def _argument_spans(site: Site, node: ast.Call) -> list[tuple[int, int]]:
    low, high = site.source.span(node.func)[1] + 1, site.source.span(node)[1] - 1
    if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
        return []
    return [site.source.outer(argument, low, high) for argument in node.args]


def _change_keyword(site: Site, node: ast.Call, argument: ast.keyword) -> Iterator[Change]:
    if argument.arg is None:
        return
    if isinstance(argument.value, ast.Constant) and isinstance(argument.value.value, bool):
        yield site.swap(argument.value, str(not argument.value.value), 1.0, "constant")
    text = site.source.text
    start, end = site.source.span(argument)
    comma = text.rfind(",", site.source.span(node.func)[1], start)
    if comma >= 0 and not text[comma + 1 : start].strip():
        yield site.put(comma, end, "", 0.6, "missing_argument")
    elif not node.args and len(node.keywords) > 1 and argument is node.keywords[0]:
        next_start = site.source.span(node.keywords[1])[0]
        yield site.put(start, next_start, "", 0.6, "missing_argument")
    elif len(node.args) + len(node.keywords) == 1:
        yield site.put(start, end, "", 0.6)


def _siblings(
    site: Site, function: ast.expr, name: str, families: tuple[tuple[str, ...], ...], bug: str = ""
) -> Iterator[Change]:
    end = site.source.span(function)[1]
    for family in families:
        for other in family:
            if name in family and other != name:
                yield site.put(end - len(name), end, other, 0.8, "" if other in _NO_BUGS else bug)
