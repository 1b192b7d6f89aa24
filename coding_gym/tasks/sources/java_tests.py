"""Reads tests and libraries out of Java source, without running or compiling it."""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import PurePosixPath

# Texts and characters first, so that what looks like a comment in them is none.
_TOKENS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)
_CLASS = re.compile(
    r"(?P<before>(?:@\w+(?:\s*\([^()]*\))?\s*|\b(?:public|final|abstract|strictfp)\s+)*)"
    r"\bclass\s+\w+(?:<[^{]*?>)?(?:\s+extends\s+(?:\w+\.)*(?P<parent>\w+))?"
)
_METHOD = re.compile(
    r"(?P<before>(?:@[\w.]+(?:\s*\([^()]*(?:\([^()]*\)[^()]*)*\))?\s*)*)"
    r"(?P<modifiers>(?:\b(?:public|protected|private|static|final|synchronized)\s+)*)"
    r"void\s+(?P<name>\w+)\s*\(\s*\)"
)
_IMPORT = re.compile(r"^\s*import\s+(?:static\s+)?([\w.]+?)(\.\*)?\s*;", re.MULTILINE)
_CAPITAL = re.compile(r"\b[A-Z]\w*")
_PROVIDED = ("java.", "javax.", "org.w3c.", "org.xml.", "org.junit.", "junit.", "org.hamcrest.")
# Libraries that tests of Defects4J's projects use, as Debian packages them in /usr/share/java.
_LIBRARIES = {
    "org.apache.commons.io.": ("commons-io",),
    "org.apache.commons.lang.": ("commons-lang",),
    "org.apache.commons.lang3.": ("commons-lang3",),
    "org.mockito.": ("mockito-core", "byte-buddy", "byte-buddy-agent", "objenesis"),
}


class JavaTree:
    """The classes of a source tree.

    Args:
        files: Text by path.
        roots: The source folders; only ``.java`` files below them count.
    """

    def __init__(self, files: Mapping[str, str], roots: tuple[str, ...]) -> None:
        below = tuple(f"{root}/" for root in roots)
        self._sources = {
            path: without_comments(text)
            for path, text in files.items()
            if path.endswith(".java") and path.startswith(below)
        }
        self._roots = roots

    def tests(self, path: str) -> tuple[str, ...]:
        """Returns the names of the tests that JUnit 3 or 4 runs in a class, inherited ones too.

        They are in order; none are of an abstract or ignored class, of one with a runner of its
        own, and of one that extends something unknown.
        """
        chain, parent = self._lineage(path)
        headers = "".join(header for header, _ in chain)
        if parent not in ("", "TestCase") or re.search(r"@Ignore|@RunWith", headers):
            return ()
        if not chain or re.search(r"\babstract\b", chain[0][0]):
            return ()
        seen: dict[str, bool] = {}
        for _, body in chain:  # what a class says of a method holds, not what it inherits
            for name, is_test in _methods(body, is_old=parent == "TestCase"):
                seen.setdefault(name, is_test)
        return tuple(sorted(name for name, is_test in seen.items() if is_test))

    def _lineage(self, path: str) -> tuple[list[tuple[str, str]], str]:
        """Returns headers and texts of a class and its parents, and the parent of the last."""
        found: dict[str, tuple[str, str]] = {}
        parent = PurePosixPath(path).stem
        while path in self._sources and path not in found:
            text = _without_texts(self._sources[path])
            match = _CLASS.search(text)
            if match is None:
                break
            found[path], parent = (match["before"], text), match["parent"] or ""
            near = f"{PurePosixPath(path).parent}/{parent}.java"
            far = (one for one in self._sources if one.endswith(f"/{parent}.java"))
            path = near if near in self._sources else next(far, "")
        return list(found.values()), parent

    def libraries(self, path: str) -> frozenset[str] | None:
        """Returns the jars that a class needs beyond the tree and the JDK with JUnit.

        None where one of its imports is in no library known here. Each class whose name it
        mentions is looked at too, which may be a few more than the compiler would read.
        """
        jars: set[str] = set()
        todo, seen = [path], {path}
        while todo:
            current = todo.pop()
            for name, star in _IMPORT.findall(self._sources.get(current, "")):
                if name.startswith(_PROVIDED) or self._has(name, bool(star)):
                    continue
                start = next((one for one in _LIBRARIES if name.startswith(one)), None)
                if start is None:
                    return None
                jars.update(_LIBRARIES[start])
            more = self._mentioned(current) - seen
            seen |= more
            todo += more
        return frozenset(jars)

    def _mentioned(self, path: str) -> set[str]:
        """Returns the files of the classes that a file names, as far as its imports allow."""
        source = self._sources.get(path, "")
        return {
            other
            for name in set(_CAPITAL.findall(source)) & self._by_name.keys()
            for other in self._by_name[name]
            for package in [self._package(other)]
            if package == self._package(path)
            or f"{package}.{name}" in source
            or f"{package}.*" in source
        }

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

    def _has(self, name: str, star: bool) -> bool:
        """Whether an import is of this tree; of a nested class or a method counts the package."""
        parts = name.split(".")
        ends = range(len(parts) if star else len(parts) - 1, max(len(parts) - 4, 0), -1)
        return any(".".join(parts[:end]) in self._packages for end in ends)


def method_text(source: str, name: str) -> str:
    """Returns a method as its file has it, moved to the left margin; "" where there is none."""
    bare = _TOKENS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    found = re.search(rf"\bvoid\s+{re.escape(name)}\s*\(\s*\)[^{{;]*\{{", bare)
    if found is None:
        return ""
    start = bare.rfind("\n", 0, found.start()) + 1
    end, depth = found.end(), 1
    while depth and end < len(bare):
        depth += {"{": 1, "}": -1}.get(bare[end], 0)
        end += 1
    lines = [line.expandtabs(4).rstrip() for line in source[start:end].splitlines()]
    margin = min(len(line) - len(line.lstrip()) for line in lines if line)
    return "\n".join(line[margin:] for line in lines)


def without_comments(source: str) -> str:
    """Returns Java source whose comments are gone, line by line as it was."""
    return _TOKENS.sub(
        lambda match: "\n" * match[0].count("\n") if match[0][0] == "/" else match[0], source
    )


def _without_texts(source: str) -> str:
    return _TOKENS.sub('""', source)


def _methods(text: str, *, is_old: bool) -> list[tuple[str, bool]]:
    """Returns a class's methods without parameters and result, and whether JUnit runs them."""
    depths, depth = [], 0
    for char in text:
        depth += (char == "{") - (char == "}")
        depths.append(depth)
    found = []
    for match in _METHOD.finditer(text):
        marks = re.findall(r"@(?:[\w.]+\.)?(\w+)", match["before"])
        is_named = match["name"].startswith("test") if is_old else "Test" in marks
        is_public = "public" in match["modifiers"] and "static" not in match["modifiers"]
        is_left_out = not is_old and "Ignore" in marks
        if depths[match.start("name")] == 1:
            found.append((match["name"], is_named and is_public and not is_left_out))
    return found


def jars_of(needed: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """Returns all jars of some classes together; None where those of one are not known."""
    found = list(needed)
    return None if None in found else frozenset().union(*(jars or () for jars in found))
