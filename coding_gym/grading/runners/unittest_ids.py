"""How unittest's tests are spelt, and what a spelling says of where a test lies."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from coding_gym import syntax

_PRINTED = re.compile(r"(\w+) \(([\w.]+)\)")
_DOTTED = re.compile(r"\w+(?:\.\w+){2,}")


@dataclass(frozen=True, slots=True)
class UnittestId:
    """A test method, as an id names it.

    Attributes:
        module: The module of its class, dotted.
        classes: Names of the classes around it, the outermost first.
        method: Its name.
    """

    module: str
    classes: tuple[str, ...]
    method: str

    @classmethod
    def parse(cls, test_id: str) -> Self | None:
        """Reads an id; None for those that name no place, such as the first line of a doc string.

        ``test_x (mod.Class)`` is what unittest prints up to Python 3.10, ``test_x
        (mod.Class.test_x)`` since; ``mod.Class.test_x`` is what it takes. Names before the last
        class that begin with a capital are classes, too.
        """
        if printed := _PRINTED.fullmatch(test_id):
            method, place = printed[1], printed[2].removesuffix(f".{printed[1]}")
        elif _DOTTED.fullmatch(test_id):
            place, _, method = test_id.rpartition(".")
        else:
            return None
        parts = place.split(".")
        start = len(parts) - 1
        while start > 1 and parts[start - 1].lstrip("_")[:1].isupper():
            start -= 1
        if start < 1:
            return None
        return cls(".".join(parts[:start]), tuple(parts[start:]), method)

    def paths(self, roots: Iterable[str]) -> tuple[str, ...]:
        """Returns where the module may lie below folders of modules; "" is the root of the tree."""
        return tuple(f"{root}/{file}" if root else file for root in roots for file in self._files)

    def node_id(self, path: str) -> str:
        """Returns the id by which reports know it, given its file."""
        return "::".join([path, *self.classes, self.method])

    def among(self, places: Mapping[str, Sequence[str]], roots: Iterable[str]) -> tuple[str, ...]:
        """Returns the reported node ids that are this test: in its file, or below another root.

        Args:
            places: What `by_place` makes of the reported node ids.
            roots: Folders of modules.
        """
        paths = places.get(self.node_id("").removeprefix("::"), ())
        below = tuple(f"/{file}" for file in self._files)
        own = [path for path in self.paths(roots) if path in paths]
        return tuple(map(self.node_id, own or [path for path in paths if path.endswith(below)]))

    @property
    def _files(self) -> tuple[str, str]:
        stem = self.module.replace(".", "/")
        return f"{stem}.py", f"{stem}/__init__.py"


def by_place(node_ids: Iterable[str]) -> dict[str, list[str]]:
    """Returns the files of node ids by what stands after the file."""
    found: dict[str, list[str]] = {}
    for name in node_ids:
        path, _, place = name.partition("::")
        found.setdefault(place, []).append(path)
    return found


def methods(
    tests: Iterable[str], files: Mapping[str, bytes], roots: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Returns node ids of those tests that lie in some files, as far as their spelling tells.

    Of those that a doc string names, methods of classes that are there to be derived from are left
    out: they run under the names of other classes.

    Args:
        tests: Ids, in any spelling.
        files: Content of test files by path.
        roots: Folders of modules.
    """
    found: dict[str, tuple[str, ...]] = {}
    lines: dict[str, list[str]] = {}
    for test in tests:
        if one := UnittestId.parse(test):
            there = (one.node_id(path) for path in one.paths(roots) if path in files)
            found[test] = tuple(there)[:1]
        else:
            lines[test] = []
    mixins = _mixins(files) if lines else set()
    for name, summary in method_summaries(files).items() if lines else ():
        if summary in lines and name.rpartition("::")[0] not in mixins:
            lines[summary].append(name)
    found |= {test: tuple(names) for test, names in lines.items()}
    return {test: names for test, names in found.items() if names}


def method_summaries(files: Mapping[str, bytes]) -> dict[str, str]:
    """Returns the first line of every method's doc string by node id; "" where there is none."""
    found: dict[str, str] = {}
    for path, tree in _trees(files):
        for place, node in _methods(tree, path):
            text = (ast.get_docstring(node, clean=False) or "").strip()
            found[place] = text.partition("\n")[0].strip()
    return found


def summarised(test: str, reported: Iterable[str], summaries: Mapping[str, str]) -> set[str]:
    """Returns the reported node ids of methods whose doc string begins with a line.

    A class that does not define a reported method has it from one that does.

    Args:
        test: The line.
        reported: Node ids.
        summaries: What `method_summaries` found in the test files.
    """
    methods = {n.rpartition("::")[2] for n, summary in summaries.items() if summary == test}
    return {
        name
        for name in reported
        if summaries.get(name, test) == test and name.rpartition("::")[2] in methods
    }


def _mixins(files: Mapping[str, bytes]) -> set[str]:
    """Node ids of classes that derive from none, or that others of their file derive from."""
    found = set()
    for path, tree in _trees(files):
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        bases = {base.id for node in classes for base in node.bases if isinstance(base, ast.Name)}
        found |= {f"{path}::{c.name}" for c in classes if not c.bases or c.name in bases}
    return found


def _trees(files: Mapping[str, bytes]) -> Iterator[tuple[str, ast.Module]]:
    for path, data in files.items():
        try:
            yield path, syntax.parse(data)
        except (SyntaxError, ValueError, RecursionError, LookupError):
            continue  # another Python's syntax, or no text at all


def _methods(node: ast.Module | ast.ClassDef, place: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _methods(child, f"{place}::{child.name}")
        elif isinstance(child, ast.FunctionDef) and isinstance(node, ast.ClassDef):
            yield f"{place}::{child.name}", child
