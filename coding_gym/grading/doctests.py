"""Expected doctests in source files: which files hold them, and the examples that they check.

A repair may change such a file, but not the examples, as a patch could edit the expected output.
"""

import ast
import doctest
from collections.abc import Callable, Iterable, Mapping

from coding_gym import syntax
from coding_gym.errors import PatchError
from coding_gym.patch import Patch

Names = tuple[str, ...]


def doctest_files(tests: Iterable[str], is_test: Callable[[str], bool]) -> dict[str, Names]:
    """Returns the objects with expected doctests, by source file.

    Args:
        tests: The ids of the expected tests.
        is_test: Returns whether a path is that of a test file.
    """
    names: dict[str, list[str | None]] = {}
    for test in tests:
        path, _, name = test.partition("::")
        if path.endswith(".py") and not is_test(path):
            names.setdefault(path, []).append(_object(path, name))
    found = {
        path: tuple(n for n in all_names if n is not None) for path, all_names in names.items()
    }
    return {path: found[path] for path in names if len(found[path]) == len(names[path])}


def _object(path: str, name: str) -> str | None:
    """Returns the object that a doctest's id names in its module; None for another test's id."""
    module = "." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    parts = name.split(".")
    lengths = (n for n in range(len(parts), 0, -1) if module.endswith("." + ".".join(parts[:n])))
    length = next(lengths, None)
    return None if length is None else ".".join(parts[length:])


def examples(text: str, names: Names) -> object:
    """Returns what the doctests of some objects of a module run and expect; None if unreadable."""
    try:
        tree = syntax.parse(text)
        docs = _docstrings(tree)
        parse = doctest.DocTestParser().get_examples
        return [[(e.source, e.want) for e in parse(docs.get(name, ""))] for name in names]
    except (SyntaxError, ValueError, RecursionError):
        return None


def _docstrings(tree: ast.Module) -> dict[str, str]:
    found = {"": ast.get_docstring(tree, clean=False) or ""}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found[prefix + child.name] = ast.get_docstring(child, clean=False) or ""
                visit(child, f"{prefix}{child.name}.")
            else:
                visit(child, prefix)

    visit(tree, "")
    return found


def edited(
    before: Mapping[str, bytes], after: Mapping[str, bytes], files: Mapping[str, Names], gold: Patch
) -> tuple[set[str], set[str]]:
    """Returns the files whose examples a patch leaves as they are, and those where it edits them.

    Files whose examples the gold patch changes, too, are in neither.

    Args:
        before: The base's files, by path.
        after: The same with the patch.
        files: As `doctest_files` returns it.
        gold: The gold patch.
    """
    kept, changed = set(), set()
    for path, names in files.items():
        if path not in before:
            continue
        base = before[path].decode("utf-8", "replace")
        wanted = examples(base, names)
        if wanted == examples(after.get(path, b"").decode("utf-8", "replace"), names):
            kept.add(path)
        elif wanted == examples(_with_gold(gold, path, base), names):
            changed.add(path)
    return kept, changed


def _with_gold(gold: Patch, path: str, text: str) -> str:
    try:
        for change in gold.files:
            if change.old_path == path:
                text = change.apply(text) if change.new_path == path else ""
    except PatchError:
        return ""
    return text
