"""Operators on calls: arguments, keywords, sibling methods, and results that are not used."""

import ast
from collections.abc import Iterator, Mapping
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
# Siblings that mostly give the same result, or fail at once.
_NO_BUGS = {"casefold", "partition", "rpartition", "setdefault", "get"}
# Values to add, by the name of the called builtin or method and by keyword.
_KEYWORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "sorted": {"key": ("str.lower", "len", "str"), "reverse": ("True",)},
    "sort": {"key": ("str.lower", "len", "str"), "reverse": ("True",)},
    "min": {"key": ("len", "str.lower"), "default": ("None", "0")},
    "max": {"key": ("len", "str.lower"), "default": ("None", "0")},
    "open": {"encoding": ('"utf-8"',)},
    "read_text": {"encoding": ('"utf-8"',)},
    "write_text": {"encoding": ('"utf-8"',)},
    "zip": {"strict": ("True",)},
    "split": {"maxsplit": ("1",)},
    "rsplit": {"maxsplit": ("1",)},
}
# Methods whose ``maxsplit`` may be given by position.
_POSITIONAL = {"split": 2, "rsplit": 2}


def argument(site: Site) -> Iterator[Change]:
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
                swapped = second + between + first
                yield site.put(left[0], right[1], swapped, 0.9, "argument_order")
        if len(spans) > 1:
            yield site.put(spans[-2][1], spans[-1][1], "", 0.6, "missing_argument")
        elif spans and not node.keywords:
            yield site.put(spans[0][0], spans[0][1], "", 0.3)


def keyword(site: Site) -> Iterator[Change]:
    """Adds a keyword, drops one, flips a boolean one."""
    for node in site.nodes():
        if isinstance(node, ast.Call):
            for argument in node.keywords:
                yield from _change_keyword(site, node, argument)
            yield from _add_keyword(site, node)


def method(site: Site) -> Iterator[Change]:
    """Calls a sibling method or a sibling builtin; exchanges ``get`` and ``[]``."""
    for node in site.nodes():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from _siblings(site, node.func, node.func.attr, _METHODS, "string_method")
            if node.func.attr == "get" and node.args and not node.keywords:
                owner = site.source.segment(node.func.value)
                key = site.source.segment(node.args[0])
                yield site.swap(node, f"{owner}[{key}]", 0.7)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from _siblings(site, node.func, node.func.id, _FUNCTIONS)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            yield from _get(site, node)


def call_result(site: Site) -> Iterator[Change]:
    """Uses a result that is thrown away, or makes the call that a sibling makes."""
    own = site.node
    if isinstance(own, ast.Expr) and isinstance(own.value, ast.Call):
        yield from _keep_result(site, own.value)
    for node, siblings in _sibling_groups(site):
        yield from _sibling_calls(site, node, siblings)


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
    elif len(node.args) + len(node.keywords) == 1:
        yield site.put(start, end, "", 0.6)


def _add_keyword(site: Site, node: ast.Call) -> Iterator[Change]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if isinstance(node.func, ast.Name):
        name = node.func.id
    present = {keyword.arg for keyword in node.keywords}
    if None in present or len(node.args) >= _POSITIONAL.get(name, 99):
        return
    for keyword_name, values in _KEYWORDS.get(name, {}).items():
        if keyword_name in present:
            continue
        for value in (*_seen(site, keyword_name), *values):
            yield _insert(site, node, _added_text(name, node, keyword_name, value))


def _added_text(name: str, node: ast.Call, keyword_name: str, value: str) -> str:
    # str.split takes no keyword before the separator, so the separator is spelled out.
    if name in _POSITIONAL and not node.args:
        return f"None, {value}"
    return f"{keyword_name}={value}"


def _insert(site: Site, node: ast.Call, text: str) -> Change:
    end = site.source.span(node)[1] - 1
    before = site.source.text[:end].rstrip()
    joint = {"(": "", ",": " "}.get(before[-1], ", ")
    return site.put(len(before), end, joint + text, 0.7)


def _seen(site: Site, keyword_name: str) -> list[str]:
    """Returns the values that the same file gives to ``key=`` elsewhere."""
    if keyword_name != "key":
        return []
    values = {
        site.source.segment(node.value): None
        for node in site.source.all_of(ast.keyword)
        if node.arg == keyword_name
    }
    return list(values)[:2]


def _siblings(
    site: Site, function: ast.expr, name: str, families: tuple[tuple[str, ...], ...], bug: str = ""
) -> Iterator[Change]:
    end = site.source.span(function)[1]
    for family in families:
        for other in family:
            if name in family and other != name:
                yield site.put(end - len(name), end, other, 0.8, "" if other in _NO_BUGS else bug)


def _get(site: Site, node: ast.Subscript) -> Iterator[Change]:
    if not isinstance(node.slice, ast.Slice | ast.Tuple):
        owner, key = site.source.segment(node.value), site.source.segment(node.slice)
        yield site.swap(node, f"{owner}.get({key})", 0.5)


def _keep_result(site: Site, value: ast.Call) -> Iterator[Change]:
    start = site.source.span(value)[0]
    if isinstance(value.func, ast.Attribute):
        owner = value.func.value
        if isinstance(owner, ast.Name | ast.Attribute):
            yield site.put(start, start, f"{site.source.segment(owner)} = ", 1.0)
    elif len(value.args) > 0 and isinstance(value.args[0], ast.Name):
        yield site.put(start, start, f"{value.args[0].id} = ", 0.8)
    if site.function is not None:
        yield site.put(start, start, "return ", 0.8)


def _sibling_groups(site: Site) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Yields each value with the values that stand beside it in the same role."""
    values = [v for s in site.block if (v := _value(s)) is not None]
    own = _value(site.node)
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


def _value(statement: ast.AST) -> ast.expr | None:
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return | ast.AugAssign):
        return statement.value
    return None


def _sibling_calls(site: Site, node: ast.expr, siblings: list[ast.expr]) -> Iterator[Change]:
    if isinstance(node, ast.Constant | ast.Starred):
        return
    text, atom = site.source.segment(node), site.source.atom(node)
    for sibling in siblings:
        if sibling is node or not isinstance(sibling, ast.Call) or sibling.keywords:
            continue
        function = sibling.func
        if isinstance(function, ast.Attribute) and not sibling.args:
            call = f".{function.attr}()"
            if not text.endswith(call):
                yield site.swap(node, atom + call, 0.8)
        elif isinstance(function, ast.Name) and len(sibling.args) == 1:
            call = f"{function.id}("
            if not text.startswith(call):
                yield site.swap(node, f"{call}{text})", 0.8)
