"""Operators on literals: constants, and default values of parameters."""

import ast
from collections.abc import Iterator

from coding_gym.mutation.numbers import is_signed, whole_number
from coding_gym.mutation.sites import Change, Site, is_inert
from coding_gym.mutation.source import Source
from coding_gym.syntax import Function

_NUM_NEAREST = 3  # number of literals of the file that can replace a literal
_MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.Call)


def constant(site: Site) -> Iterator[Change]:
    """Negates a boolean, or replaces a literal by another value, such as a literal of the file."""
    for node in site.nodes():
        if not isinstance(site.parent(node), ast.arguments):
            yield from _other_literals(site, node)


def default(site: Site) -> Iterator[Change]:
    """Moves the creation of a mutable default into the function, or changes a default value."""
    function = site.node
    if not isinstance(function, Function):
        return
    for name, value in _defaults(function.args):
        if isinstance(value, _MUTABLE):
            yield from _move_inside(site, function, name, value)
        elif isinstance(value, ast.Name):
            yield site.swap(value, "None", bug="default")
        yield from _other_literals(site, value)


def _other_literals(site: Site, node: ast.expr) -> Iterator[Change]:
    number = whole_number(node)
    if number is not None:
        if not is_signed(site, node):
            for other in (0, 1, -1):
                if other != number and number in (0, 1, -1):
                    yield site.swap(node, str(other), 0.8)
            yield from _from_file(site, node, int)
        return
    if not isinstance(node, ast.Constant) or isinstance(site.parent(node), ast.JoinedStr):
        return
    is_default = isinstance(site.parent(node), ast.arguments)
    bug = "default" if is_default else "constant"
    if isinstance(node.value, bool):
        yield site.swap(node, str(not node.value), 1.0, bug)
    elif node.value is None:
        yield site.swap(node, '""', 0.4)
    elif isinstance(node.value, str):
        other_text = '""' if node.value else "None"
        yield site.swap(node, other_text, 0.4, "default" if is_default else "")
        yield from _from_file(site, node, str)
    elif isinstance(node.value, float):
        yield from _from_file(site, node, float)


def _from_file(site: Site, node: ast.expr, kind: type) -> Iterator[Change]:
    literal = site.source.segment(node)
    weight = 0.5
    for text in _nearest_literals(site.source, node.lineno, kind, literal):
        yield site.swap(node, text, weight)
        weight *= 0.7


def _nearest_literals(source: Source, line: int, kind: type, literal: str) -> list[str]:
    distances: dict[str, int] = {}
    for text, number in source.literals.get(kind, ()):
        if text != literal:
            distance = abs(number - line)
            distances[text] = min(distance, distances.get(text, distance))
    return sorted(distances, key=lambda text: (distances[text], text))[:_NUM_NEAREST]


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    for argument, value in zip(with_default, arguments.defaults, strict=True):
        yield argument.arg, value
    for argument, keyword_value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword_value is not None:
            yield argument.arg, keyword_value


def _move_inside(site: Site, function: Function, name: str, value: ast.expr) -> Iterator[Change]:
    body = [s for s in function.body if not is_inert(s)]
    indent = site.source.indent(body[0]) if body else None
    if indent is None:
        return
    start = site.source.span(body[0])[0]
    text, line_end = site.source.segment(value), f"{site.source.newline}{indent}"
    lines = f"if {name} is None:{line_end}{site.source.step}{name} = {text}{line_end}"
    yield Change((site.edit(*site.source.span(value), "None"), site.edit(start, start, lines)), 1.0)
