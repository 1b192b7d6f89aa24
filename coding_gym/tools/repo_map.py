"""Prints the most used definitions in a tree's Python files; runs as a program in the sandbox.

The program needs only Python 3.7 or newer. Standard input is a JSON object: ``paths`` (files or
folders whose definitions are printed; empty for all) and ``max_chars``. The tree is untrusted:
files are parsed but never imported, and sizes are bounded.
"""

# ruff: noqa: PTH123 - a short program without pathlib's import time

from __future__ import annotations

import ast
import json
import os
import re
import sys
import warnings
from collections import Counter
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_FILES, MAX_FILE_BYTES = 2000, 256 << 10
MAX_LINE_CHARS = 100
SKIPPED = {"node_modules", "__pycache__", "venv", "site-packages", "dist", "build"}
# Uses of these names rarely refer to a definition of the project.
COMMON = frozenset(name for kind in (str, bytes, list, dict, set) for name in dir(kind))
_TEST = re.compile(r"(?:^|[/_])tests?[/_.]|conftest")
LINE_END = re.compile(r"\r\n|\r|\n")  # the line ends of Python source
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Definition(NamedTuple):
    """A class, function or method; ``lines`` are the lines of its outer classes, then its own."""

    path: str
    name: str
    lines: tuple[int, ...]


def python_files() -> Iterator[str]:
    """Yields the paths of the tree's Python files, outer folders first."""
    folders = [""]
    for folder in folders:  # the loop extends the list; `os.walk` is recursive before Python 3.12
        with suppress(OSError):  # the folder cannot be read
            for entry in sorted(os.scandir(folder or "."), key=lambda entry: entry.name):
                path = folder + entry.name
                if entry.is_dir(follow_symlinks=False):
                    is_skipped = entry.name[0] == "." or entry.name in SKIPPED
                    folders += [] if is_skipped else [f"{path}/"]
                elif path.endswith(".py") and entry.is_file(follow_symlinks=False):
                    yield path


def definitions(
    path: str, body: list[ast.stmt], outer_lines: tuple[int, ...] = ()
) -> Iterator[Definition]:
    """Yields the definitions of a module or class, including those of nested classes."""
    for node in body:
        if isinstance(node, SCOPES):
            lines = (*outer_lines, node.lineno)
            yield Definition(path, node.name, lines)
            if isinstance(node, ast.ClassDef):
                yield from definitions(path, node.body, lines)


def uses(tree: ast.Module) -> set[str]:
    """Returns the names that a file uses, including attribute names."""
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def ranked(all_definitions: list[Definition], names: dict[str, set[str]]) -> list[Definition]:
    """Returns definitions sorted by the number of other files that use their names.

    This number is divided by the number of files that define the name. Tests, private names and
    common names come last.
    """
    num_files_with = Counter(name for names_of_file in names.values() for name in names_of_file)
    num_definers = Counter(name for _, name in {(d.path, d.name) for d in all_definitions})

    def rank(d: Definition) -> tuple[bool, float, Definition]:
        is_minor = d.name in COMMON or d.name.startswith("_") or bool(_TEST.search(d.path))
        num_users = num_files_with[d.name] - (d.name in names[d.path])
        return is_minor, -num_users / num_definers[d.name], d

    return sorted(all_definitions, key=rank)


def render(order: list[Definition], texts: dict[str, list[str]], max_chars: int) -> tuple[str, int]:
    """Returns the first definitions that fit ``max_chars``, grouped by file, and their number."""
    rows: dict[str, dict[int, str]] = {}
    num_printed = 0
    for path, _, lines in order:
        file_rows = rows.get(path, {})
        numbers = [n for n in lines if n not in file_rows]
        new_rows = {n: f"{n:6}  {texts[path][n - 1][:MAX_LINE_CHARS]}" for n in numbers}
        max_chars -= sum(len(row) + 1 for row in new_rows.values())
        max_chars -= 0 if file_rows else len(path) + 2
        if max_chars < 0:
            break
        rows.setdefault(path, {}).update(new_rows)
        num_printed += 1
    blocks = [f"{path}:\n" + "\n".join(r[n] for n in sorted(r)) for path, r in rows.items()]
    return "\n".join(blocks), num_printed


def main() -> None:
    """Reads the request and prints the map."""
    warnings.simplefilter("ignore")
    request = json.load(sys.stdin)
    paths = tuple(os.path.normpath(path) for path in request["paths"])
    all_definitions: list[Definition] = []
    texts: dict[str, list[str]] = {}
    names: dict[str, set[str]] = {}
    for path in islice(python_files(), MAX_FILES):
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
            if len(data) > MAX_FILE_BYTES:
                continue
            tree = ast.parse(data)
            all_definitions += definitions(path, tree.body)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        texts[path], names[path] = LINE_END.split(data.decode("utf-8", "replace")), uses(tree)
    order = [
        d
        for d in ranked(all_definitions, names)
        if not paths or any(p in (".", d.path) or d.path.startswith(p + "/") for p in paths)
    ]
    text, num_printed = render(order, texts, request["max_chars"])
    summary = f"({num_printed} of {len(order)} definitions in Python files, the most used first)"
    sys.stdout.buffer.write(f"{text}\n{summary}\n".encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
