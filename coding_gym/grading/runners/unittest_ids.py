"""Ids of unittest, Django and SymPy tests, and the functions that these ids name."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from coding_gym import syntax

# Ids as unittest prints them, and as its command line accepts them.
_PRINTED = re.compile(r"(\w+) \(([\w.]+)\)")
_DOTTED = re.compile(r"\w+(?:\.\w+){2,}")


def parse_id(test_id: str) -> tuple[tuple[str, ...], str] | None:
    """Returns the possible files of the method that an id names, and its ``CLASS::METHOD``.

    Up to Python 3.10, unittest prints ``test_x (mod.Class)``, later ``test_x (mod.Class.test_x)``;
    its command line accepts ``mod.Class.test_x``. Capitalised names before the last class are
    enclosing classes. The module is in Django's ``tests`` folder or at the root. The result is None
    if the id is not the name of a method, but for example the first line of a docstring.
    """
    if printed := _PRINTED.fullmatch(test_id):
        method, owner = printed[1], printed[2].removesuffix(f".{printed[1]}")
    elif _DOTTED.fullmatch(test_id):
        owner, _, method = test_id.rpartition(".")
    else:
        return None
    parts = owner.split(".")
    num_modules = len(parts) - 1
    while num_modules > 1 and parts[num_modules - 1].lstrip("_")[:1].isupper():
        num_modules -= 1
    if num_modules < 1:
        return None
    stem, classes = "/".join(parts[:num_modules]), parts[num_modules:]
    files = f"{stem}.py", f"{stem}/__init__.py"
    return (*(f"tests/{file}" for file in files), *files), "::".join([*classes, method])


def methods(tests: Iterable[str], files: Mapping[str, bytes]) -> dict[str, tuple[str, ...]]:
    """Returns the node ids of tests, by test; omits tests whose functions are not in the files.

    Args:
        tests: Ids that unittest or Django prints, or names of functions, as SymPy prints.
        files: Content of test files by path.
    """
    parsed_ids = {test: parse_id(test) for test in tests}
    titles_by_id = {} if all(parsed_ids.values()) else _titles(files)
    node_ids: dict[str, list[str]] = {}
    for test, parsed_id in parsed_ids.items():
        if parsed_id:
            paths, method = parsed_id
            node_ids[test] = [f"{path}::{method}" for path in paths if path in files][:1]
        else:
            node_ids[test] = [id_ for id_, titles in titles_by_id.items() if test in titles]
    return {test: tuple(ids) for test, ids in node_ids.items() if ids}


def _titles(files: Mapping[str, bytes]) -> dict[str, tuple[str, str]]:
    """Returns the name of every function and the first line of its docstring, by node id."""
    titles: dict[str, tuple[str, str]] = {}
    for path, data in files.items():
        tree = syntax.parse_or_none(data)  # None for the syntax of another Python version
        for node_id, node in _nodes(tree, path) if tree else ():
            text = (ast.get_docstring(node, clean=False) or "").strip()
            titles[node_id] = node.name, text.partition("\n")[0].strip()
    return titles


def _nodes(node: ast.Module | ast.ClassDef, owner: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _nodes(child, f"{owner}::{child.name}")
        elif isinstance(child, ast.FunctionDef):
            yield f"{owner}::{child.name}", child
