"""What Java classes need to be compiled beyond the sources of a tree and the JDK with JUnit."""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import PurePosixPath

from coding_gym.tasks.sources.junit_source import without_comments

_GIVEN = ("java.", "javax.", "org.w3c.", "org.xml.", "org.junit.", "junit.", "org.hamcrest.")
# Libraries that tests of Defects4J's projects use, as Debian packages them in /usr/share/java.
_LIBRARIES = {
    "org.apache.commons.io.": ("commons-io",),
    "org.apache.commons.lang.": ("commons-lang",),
    "org.apache.commons.lang3.": ("commons-lang3",),
    "org.mockito.": ("mockito-core", "byte-buddy", "byte-buddy-agent", "objenesis"),
}
_IMPORT = re.compile(r"^\s*import\s+(?:static\s+)?([\w.]+?)(\.\*)?\s*;", re.MULTILINE)
_NAMES = re.compile(r"\b[A-Z]\w*")


class JavaReach:
    """The classes of a tree and what they lead to.

    Args:
        files: Java source by path.
        roots: The source folders.
    """

    def __init__(self, files: Mapping[str, str], roots: tuple[str, ...]) -> None:
        self._sources = {
            path: without_comments(text)
            for path, text in files.items()
            if path.endswith(".java") and path.startswith(tuple(f"{root}/" for root in roots))
        }
        self._roots = roots
        self._missing: dict[str, frozenset[str]] = {}
        self._leads_to: dict[str, set[str]] = {}

    def foreign(self, path: str) -> frozenset[str]:
        """Returns the imports that nothing here answers, in a file and in what it leads to.

        What a file leads to is each class whose name it mentions, which may be a few more than the
        compiler would read.
        """
        found: set[str] = set()
        todo, seen = [path], {path}
        while todo:
            current = todo.pop()
            if current not in self._sources:
                continue
            found |= self._unanswered(current)
            for other in self._mentioned(current) - seen:
                seen.add(other)
                todo.append(other)
        return frozenset(found)

    def _mentioned(self, path: str) -> set[str]:
        if path not in self._leads_to:
            names = set(_NAMES.findall(self._sources[path])) & self._by_name.keys()
            self._leads_to[path] = {
                other for name in names for other in self._by_name[name] if self._means(path, other)
            }
        return self._leads_to[path]

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self._sources:
            found.setdefault(PurePosixPath(path).stem, []).append(path)
        return found

    @cached_property
    def _packages(self) -> frozenset[str]:
        return frozenset(map(self._package, self._sources))

    def _package(self, path: str) -> str:
        root = next(root for root in self._roots if path.startswith(f"{root}/"))
        return str(PurePosixPath(path).parent.relative_to(root)).replace("/", ".")

    def _means(self, path: str, other: str) -> bool:
        """Whether the simple name of another class means that class in a file."""
        package = self._package(other)
        source = self._sources[path]
        return (
            package == self._package(path)
            or f"{package}.{PurePosixPath(other).stem}" in source
            or f"{package}.*" in source
        )

    def _unanswered(self, path: str) -> frozenset[str]:
        if path not in self._missing:
            self._missing[path] = frozenset(
                name
                for name, star in _IMPORT.findall(self._sources[path])
                if not name.startswith(_GIVEN) and not self._is_known(name, bool(star))
            )
        return self._missing[path]

    def _is_known(self, name: str, star: bool) -> bool:
        """Whether an import is of this tree; of a nested class or a method counts the package."""
        parts = name.split(".")
        ends = range(len(parts) if star else len(parts) - 1, max(len(parts) - 4, 0), -1)
        return any(".".join(parts[:end]) in self._packages for end in ends)


def libraries(imports: Iterable[str]) -> frozenset[str] | None:
    """Returns the jars that answer imports; None where one of them is in no library known here."""
    found: set[str] = set()
    for name in imports:
        jars = next((jars for start, jars in _LIBRARIES.items() if name.startswith(start)), None)
        if jars is None:
            return None
        found |= set(jars)
    return frozenset(found)
