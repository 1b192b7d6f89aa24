"""Where names are defined and where they are used: Python by its own parser, the rest by lines."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING, NamedTuple

from .line_tags import line_tags

if TYPE_CHECKING:
    from .tree import SourceFile

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)


class Tags(NamedTuple):
    """What a file defines and uses.

    Attributes:
        definitions: Line from 1, name with the names of what it is in, kind: ``class``,
            ``function``, ``variable``, ``attribute`` or, inside of a function, ``local``.
        uses: Line from 1 and name, with a dot before it where it is looked up in something.
    """

    definitions: list[tuple[int, str, str]]
    uses: list[tuple[int, str]]


def tags(file: SourceFile) -> Tags:
    """Returns a file's tags, in the order of lines."""
    found = python_tags(file.data) if file.language == "python" else None
    if found is None:  # another language, or no valid Python
        found = Tags(*line_tags(file.lines(), file.language))
    return Tags(sorted(found.definitions), sorted(found.uses))


def python_tags(data: bytes) -> Tags | None:
    """Returns the tags of a Python file, or None where this Python cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = Tags([], [])
    nothing: frozenset[str] = frozenset()
    waiting: list[tuple[ast.AST, str, frozenset[str] | None]] = [(tree, "", None)]
    while waiting:  # no recursion: trees can be deep
        node, scope, own = waiting.pop()
        if isinstance(node, _SCOPES):
            name = scope + node.name
            is_class = isinstance(node, ast.ClassDef)
            kind = "local" if own is not None else "class" if is_class else "function"
            found.definitions.append((node.lineno, name, kind))
            scope = name + "."
            if not is_class:
                own = _bound(node) | (own or nothing)
        else:
            _note(node, scope, found, own)
        waiting += [(child, scope, own) for child in ast.iter_child_nodes(node)]
    return Tags(_once(found.definitions), found.uses)


def _bound(function: ast.AST) -> frozenset[str]:
    """Returns the names that a function binds itself, which are nobody else's."""
    nodes = list(ast.walk(function))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    shared = {name for n in nodes if isinstance(n, ast.Global) for name in n.names}
    return frozenset(stored | {n.arg for n in nodes if isinstance(n, ast.arg)}) - shared


def _note(node: ast.AST, scope: str, found: Tags, own: frozenset[str] | None) -> None:
    """Notes what one node that opens no scope defines or uses.

    Args:
        node: The node.
        scope: The names of what it is in, each with a dot.
        found: Where it is noted.
        own: The names that are bound in the functions around it, None outside of functions.
    """
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load):
            if own is None or node.id not in own:
                found.uses.append((node.lineno, node.id))
        elif isinstance(node.ctx, ast.Store) and own is None:
            found.definitions.append((node.lineno, scope + node.id, "variable"))
    elif isinstance(node, ast.Attribute):
        owner = node.value
        if isinstance(node.ctx, ast.Load):
            found.uses.append((node.lineno, "." + node.attr))
        elif isinstance(owner, ast.Name) and owner.id == "self" and scope.count("."):
            name = f"{scope.split('.')[0]}.{node.attr}"
            found.definitions.append((node.lineno, name, "attribute"))
        else:
            found.uses.append((node.lineno, "." + node.attr))
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            line = getattr(alias, "lineno", node.lineno)
            found.uses.extend((line, part) for part in alias.name.split("."))


def _once(definitions: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """Leaves of each variable and attribute the first place that binds it."""
    first: dict[str, tuple[int, str, str]] = {}
    kept = []
    for definition in sorted(definitions):
        if definition[2] in ("class", "function", "local"):
            kept.append(definition)
        else:
            first.setdefault(definition[1], definition)
    return kept + list(first.values())
