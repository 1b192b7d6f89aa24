"""Finds the data files of Python tests, from the paths that their source names."""

import ast
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial

from coding_gym import syntax

_SOURCES = (".py", ".pyi", ".pyx", ".pxd", ".c", ".cc", ".cpp", ".h", ".hpp", ".rs", ".lark", ".g4")
_UNKNOWN = "\0"  # stands for a part of a path that is not a literal
_VARIABLE = re.compile(r"[\0{*?%\[]")
_LITERAL = re.compile(r"""["']([^"'\\\n]{1,200})["']""")
_JOIN_FUNCTIONS = {"Path", "PurePath", "join", "joinpath"}
_IDENTITY_FUNCTIONS = {"str", "fspath", "abspath", "realpath", "resolve"}
_READ_FUNCTIONS = {"open", "read_text", "read_bytes", "glob", "rglob"}
_READ_FUNCTIONS |= {"iterdir", "listdir", "scandir", "walk"}
_MAX_NAME = 400  # characters of a string that can be a path


@dataclass(slots=True)
class _Names(ast.NodeVisitor):
    """The paths in one source text.

    Attributes:
        paths: All strings that can be paths, with `_UNKNOWN` in place of expressions.
        read: The paths of files and folders that the code reads.
        modules: The modules that the code imports, as paths without suffix.
        values: The paths that variables hold, by name.
    """

    paths: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)

    def visit(self, node: ast.AST) -> None:
        """Records the path that an expression makes; else visits the children of the node."""
        if (path := self._path(node)) is not None:
            self.paths.add(path)
        else:
            self.generic_visit(node)

    def read_module(self, tree: ast.Module) -> None:
        """Records the paths, variables and imports of a module."""
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if (path := self._path(value)) is not None:
                        self.values[name] = path
                case ast.Import(names=names):
                    self.modules.update(alias.name.replace(".", "/") for alias in names)
                case ast.ImportFrom(module=str(module), level=0):
                    self.modules.add(module.replace(".", "/"))
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args):
                    self._add_read(name, [owner, *args[:1]])
                case ast.Call(func=ast.Name(id=name), args=args):
                    self._add_read(name, args[:1])
        self.visit(tree)

    def _add_read(self, name: str, nodes: Iterable[ast.expr]) -> None:
        if name in _READ_FUNCTIONS:
            self.read.update(path for node in nodes if (path := self._path(node)) is not None)

    def _path(self, node: ast.AST) -> str | None:
        """Returns the path that an expression makes; None if it contains no string."""
        match node:
            case ast.Constant(value=str(text)) if text and len(text) <= _MAX_NAME:
                return text
            case ast.Name(id=name):
                return self.values.get(name)
            case ast.JoinedStr(values=parts):
                return self._joined("", parts)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._joined("/", [left, right])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._joined("", [left, right])
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args):
                return self._called(name, args, owner)
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._called(name, args, None)
        return None

    def _called(self, name: str, args: list[ast.expr], owner: ast.expr | None) -> str | None:
        """Returns the path that a call makes, or None; ``owner`` is the object of a method."""
        if name in _IDENTITY_FUNCTIONS:
            argument = args[0] if args else owner
            return self._path(argument) if argument else None
        if name == "files" and owner and args and ast.unparse(owner).endswith("resources"):
            return (self._path(args[0]) or "").replace(".", "/") or None  # a package
        if name == "joinpath" and owner:
            return self._joined("/", [owner, *args])
        return self._joined("/", args) if name in _JOIN_FUNCTIONS else None

    def _joined(self, separator: str, nodes: Iterable[ast.AST]) -> str | None:
        parts = [self._path(node) for node in nodes]
        if not any(parts):
            return None
        return separator.join(part or _UNKNOWN for part in parts)[-_MAX_NAME:]


@lru_cache(maxsize=64)
def _names(source: str) -> _Names:
    """Returns the paths in a source text, or its string literals if it is not valid Python."""
    names = _Names()
    try:
        names.read_module(syntax.parse(source))
    except (SyntaxError, ValueError, RecursionError):
        names.paths.update(_LITERAL.findall(source))
    return names


def data_of_tests(
    paths: Collection[str], tests: Mapping[str, str], changed_by_gold: Collection[str]
) -> dict[str, str]:
    """Returns the paths that are data of the tests, each with a test file that names it.

    A test names data by a path relative to the root or to the folder of a test file; a path with a
    slash can also be relative to a folder above a test file. The name protects a file, files that
    differ from it only in their suffix, and all files below a folder. The name does not
    protect a folder of the program: tests import the folder, or the gold patch changes a source
    file below the folder. If the gold patch changes a file of another kind below the folder, files
    with the suffix of this file also belong to the program, unless a test names this file, or
    unless a folder above this file holds tests or files that tests read. A source file is data only
    if tests read this file or a folder above it, and its folder is not part of the program.

    Args:
        paths: The paths to classify.
        tests: The source texts of the tests, by path.
        changed_by_gold: The files that the gold patch changes.
    """
    names_by_test = {test: _names(source) for test, source in tests.items()}
    all_names = names_by_test.values()
    parts = {part for path in (*paths, *changed_by_gold) for part in path.split("/")}
    parts |= {_stem(part) for part in parts}
    test_folders = {"", *map(posixpath.dirname, tests)}
    resolve = partial(_resolve, parts=parts, test_folders=test_folders)
    read_paths = resolve(path for names in all_names for path in names.read)
    named_by_test = {t: resolve(names.read | names.paths) for t, names in names_by_test.items()}
    named_paths = set().union(*named_by_test.values())
    named_stems = {_stem(path) for path in named_paths if "/" in path}
    data_folders = {*test_folders, *read_paths, *map(posixpath.dirname, read_paths)} - {""}
    # The folders above these files and modules belong to the program: all files in the folders, or
    # only files with the suffix, if it is not empty.
    program = [(f"{module}/", "") for names in all_names for module in names.modules]
    for path in changed_by_gold:
        if path.endswith(_SOURCES):
            program.append((path, ""))
        elif _stem(path) not in named_stems and data_folders.isdisjoint(_parents(path)):
            program.append((path, _suffix(path)))

    @cache
    def is_program(folder: str, suffix: str = "") -> bool:
        prefixes = (f"{folder}/", folder.removeprefix("src/") + "/")
        files = [path for path, required_suffix in program if required_suffix in ("", suffix)]
        return not folder or any(path.startswith(prefixes) for path in files)

    def is_data(path: str) -> bool:
        is_source, suffix = path.endswith(_SOURCES), _suffix(path)
        if is_source and is_program(posixpath.dirname(path)):
            return False
        names = read_paths if is_source else named_paths
        if path in names or (not is_source and _stem(path) in named_stems):
            return True
        return any(folder in names and not is_program(folder, suffix) for folder in _parents(path))

    return {path: _naming_test(path, named_by_test) for path in paths if is_data(path)}


def _naming_test(path: str, named_by_test: Mapping[str, set[str]]) -> str:
    """Returns the first test that names a data file, its stem or a folder above it."""
    folders = {*_parents(path)}
    return next(
        test
        for test, names in named_by_test.items()
        if names & folders or _stem(path) in map(_stem, names)
    )


def _resolve(texts: Iterable[str], parts: set[str], test_folders: set[str]) -> set[str]:
    """Returns the paths from the root that paths in tests can name."""
    parents = {parent for folder in test_folders for parent in _parents(folder)}
    paths: set[str] = set()
    for name in {_relative_name(text) for text in texts}:
        head, tail = posixpath.split(name)
        # For speed: skips names whose last two components are in no path.
        if not parts.isdisjoint((_stem(tail), posixpath.basename(head))):
            folders = test_folders | parents if "/" in name else test_folders
            paths |= {posixpath.normpath(posixpath.join(folder, name)) for folder in folders}
    return paths


def _relative_name(text: str) -> str:
    """Returns the folders and name before the first variable part; "" for an absolute path."""
    name = text.removeprefix(_UNKNOWN).lstrip("/") if text.startswith(_UNKNOWN) else text
    if variable := _VARIABLE.search(name):
        name = name[: variable.start()].rpartition("/")[0]
    return "" if name.startswith("/") else posixpath.normpath(name)


def _parents(path: str) -> Iterator[str]:
    """Yields the folders above a path, the innermost first, without the root."""
    while path := posixpath.dirname(path):
        yield path


def _stem(path: str) -> str:
    return posixpath.splitext(path)[0]


def _suffix(path: str) -> str:
    return posixpath.splitext(path)[1]
