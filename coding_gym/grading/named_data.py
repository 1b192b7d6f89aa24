"""Finds the files that Python tests read, from the paths that their string literals name."""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

_SOURCES = (".py", ".pyi", ".pyx", ".pxd", ".c", ".cc", ".cpp", ".h", ".hpp", ".rs", ".lark", ".g4")
_LITERAL = re.compile(r"""(["'])((?:(?!\1)[^\\\n]|\\.)+)\1""")
_JOIN = re.compile(r"[)\s]*(?:[/,]|\.joinpath\()\s*[rf]?")  # between two literals of one path
_WORD = re.compile(r"\w+")
_PATTERN = re.compile(r"[{*?%\[]")  # the start of the variable part of a path
_MAX_JOINED = 6
_MAX_BEFORE = 200
_IN_PATH = re.compile(
    r"(?:/|\b(?:\w*Path|open|join|joinpath|listdir|scandir|walk|r?glob)\()\s*[rf]?$"
)
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w[\w.]*)", re.MULTILINE)
# Code that starts or imports the program whose path comes next.
_START = (
    r"""(?:(?:sys\.executable|["']python[\d.]*["'])\s*,"""
    r"|\b(?:subprocess\.\w+|Popen|check_output|check_call|run_path|import_\w+)\(\s*\[?"
    r"|\b(?:spec_from_file_location|\w+Loader)\([^,\n]*,"
    r"|\bsys\.path\b[^\n]*)[\w\s(./]*"
)
_STARTED = re.compile(_START)
_ASSIGNED = re.compile(r"(\w+)\s*=[\w\s(./]*$")


@dataclass(frozen=True, slots=True)
class NamedData:
    """The paths that tests name, relative to the tree or to a test.

    Attributes:
        names: Every literal and every sequence of joined literals.
        paths: The names that are written as paths, without the programs that tests start.
        modules: The modules that tests import, as paths without suffix.
    """

    names: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, texts: Iterable[str], paths: Iterable[str]) -> Self:
        """Reads the source texts of tests, which can be parts of files.

        Args:
            texts: The texts.
            paths: The paths that `find` will search; other names are skipped.
        """
        data, started = cls(), set[str]()
        parts = {part for path in paths for part in path.split("/")}
        parts |= {posixpath.splitext(part)[0] for part in parts} | {".", ".."}
        for text in texts:
            data.modules.update(name.replace(".", "/") for name in _IMPORT.findall(text))
            starts = [match.group() for match in _STARTED.finditer(text)]
            variables = {word for start in starts for word in _WORD.findall(start)}
            for before, name, is_path in _names(text, parts):
                data.names.add(name)
                if is_path:
                    data.paths.add(name)
                    started |= {name} if _is_started(before, variables) else set()
        data.paths.difference_update(started)
        return data

    def find(
        self, paths: Iterable[str], test_files: Collection[str], changed_by_gold: Collection[str]
    ) -> set[str]:
        """Returns the data of the tests among some paths.

        A name is relative to the root or to the folder of a test file; with a slash, also to any
        folder above a test file. It protects a file, the files of the same folder and stem, and
        everything below a folder. If tests import a folder, or the gold patch changes a source file
        below it, the folder is part of the program and its name protects nothing. Source files are
        data only if their name is written as a path and they are not directly in such a folder.

        Args:
            paths: The paths.
            test_files: The files of the tests.
            changed_by_gold: The files that the gold patch changes.
        """
        near = {"", *map(posixpath.dirname, test_files)}
        above = {parent for folder in near for parent in _parents(folder)} - near
        sources = [path for path in changed_by_gold if path.endswith(_SOURCES)]
        program = (*sources, *(f"{module}/" for module in self.modules))
        stems = {posixpath.splitext(name)[0] for name in self.paths}

        def is_program(folder: str) -> bool:
            start = folder.removeprefix("src/") + "/"
            return not folder or any(part.startswith((f"{folder}/", start)) for part in program)

        def is_data(path: str) -> bool:
            is_source = path.endswith(_SOURCES)
            if is_source and is_program(posixpath.dirname(path)):
                return False
            names = self.paths if is_source else self.names
            for folder in near | above:
                file = posixpath.relpath(f"/{path}", f"/{folder}")
                stem = posixpath.splitext(file)[0]
                if "/" not in file and folder in above:
                    continue
                if file in names or (stem in stems and not is_source):
                    return True
                for parent in _parents(file):
                    is_known = parent in names and ("/" in parent or folder in near)
                    whole = posixpath.normpath(posixpath.join(folder, parent))
                    if is_known and not is_program(whole):
                        return True
            return False

        return {path for path in paths if is_data(path)}


def _names(text: str, parts: Collection[str]) -> Iterator[tuple[str, str, bool]]:
    """Yields the text before each name, the name, and whether it is written as a path."""
    literals = list(_LITERAL.finditer(text))
    for number, first in enumerate(literals):
        name, end = "", first.start()
        before = text[max(0, end - _MAX_BEFORE) : end]
        is_path = _IN_PATH.search(before) is not None
        for literal in literals[number : number + _MAX_JOINED]:
            joint = text[end : literal.start()]
            if name and not _JOIN.fullmatch(joint):
                break
            part = literal[2].lstrip("/")
            is_path |= "/" in joint or "/" in part
            end = literal.end()
            if variable := _PATTERN.search(part):
                part = part[: variable.start()].rpartition("/")[0]
            name = posixpath.normpath(posixpath.join(name, part))
            if posixpath.splitext(posixpath.basename(name))[0] not in parts:
                break
            yield before, name, is_path
            if variable:
                break


def _is_started(before: str, variables: Collection[str]) -> bool:
    """Whether the text before a path starts it, or assigns it to one of the variables."""
    assigned = _ASSIGNED.search(before)
    is_started = any(match.end() == len(before) for match in _STARTED.finditer(before))
    return is_started or bool(assigned and assigned[1] in variables)


def _parents(path: str) -> Iterator[str]:
    """Yields the folders above a relative path, without the root and folders that end in ``..``."""
    while (path := posixpath.dirname(path)) and not path.endswith(".."):
        yield path
