"""What can be told of Java tests from their source alone, without running or compiling it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

# Strings and characters first, so that what looks like a comment in them is none.
_TOKENS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)
_CLASS = re.compile(
    r"(?P<before>(?:@\w+(?:\s*\([^()]*\))?\s*|\b(?:public|final|abstract|strictfp)\s+)*)"
    r"\bclass\s+(?P<name>\w+)(?:<[^{]*?>)?(?:\s+extends\s+(?P<parent>[\w.]+))?"
)
_METHOD = re.compile(
    r"(?P<before>(?:@[\w.]+(?:\s*\([^()]*(?:\([^()]*\)[^()]*)*\))?\s*)*)"
    r"(?P<modifiers>(?:\b(?:public|protected|private|static|final|synchronized)\s+)*)"
    r"void\s+(?P<name>\w+)\s*\(\s*\)"
)
_PACKAGE = re.compile(r"\bpackage\s+([\w.]+)\s*;")
_JUNIT_3 = "TestCase"


@dataclass(frozen=True, slots=True)
class JavaMethod:
    """A method without parameters and result.

    Attributes:
        name: Its name.
        annotations: What stands before it.
        is_public: Whether it is public and belongs to objects.
    """

    name: str
    annotations: str
    is_public: bool


@dataclass(frozen=True, slots=True)
class JUnitClass:
    """The first class of a source file.

    Attributes:
        name: Its name, with its package.
        parent: The simple name of what it extends; "" for nothing.
        header: Annotations and modifiers before it.
        methods: Its methods without parameters and result, inherited ones not among them.
    """

    name: str
    parent: str
    header: str
    methods: tuple[JavaMethod, ...]

    @classmethod
    def parse(cls, source: str) -> "JUnitClass | None":
        """Returns the first class that a source declares; None where there is none."""
        text = _bare(source)
        found = _CLASS.search(text)
        if found is None:
            return None
        package = _PACKAGE.search(text)
        prefix = f"{package[1]}." if package else ""
        depths = _depths(text)
        methods = tuple(
            JavaMethod(
                match["name"],
                match["before"],
                "public" in match["modifiers"] and "static" not in match["modifiers"],
            )
            for match in _METHOD.finditer(text)
            if depths[match.start("name")] == 1
        )
        parent = (found["parent"] or "").rpartition(".")[2]
        return cls(prefix + found["name"], parent, found["before"], methods)


def junit_tests(name: str, classes: Mapping[str, JUnitClass]) -> tuple[str, ...]:
    """Returns the names of the tests that JUnit 3 or 4 runs in a class, inherited ones too.

    Args:
        name: The simple name of the class.
        classes: Every class that it may inherit from, by simple name.

    Returns:
        Them in order; nothing for an abstract or ignored class, for one with a runner of its own,
        and for one that extends something unknown.
    """
    chain: list[JUnitClass] = []
    while name in classes and classes[name] not in chain:
        chain.append(classes[name])
        name = chain[-1].parent
    if not chain or (name and name != _JUNIT_3) or re.search(r"\babstract\b", chain[0].header):
        return ()
    if any(mark in one.header for one in chain for mark in ("@Ignore", "@RunWith")):
        return ()
    is_old = name == _JUNIT_3
    seen: dict[str, bool] = {}
    for one in chain:  # what a class says of a method holds, not what it inherits
        for method in one.methods:
            seen.setdefault(method.name, method.is_public and _is_test(method, is_old))
    return tuple(sorted(method for method, is_test in seen.items() if is_test))


def method_text(source: str, name: str) -> str:
    """Returns a method as its file has it, moved to the left margin; "" where there is none."""
    bare = _bare(source, keep_length=True)
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

    def kept(match: re.Match[str]) -> str:
        text = match[0]
        return "\n" * text.count("\n") if text[0] == "/" else text

    return _TOKENS.sub(kept, source)


def _bare(source: str, *, keep_length: bool = False) -> str:
    """Returns source without comments and without what is in its texts."""
    if keep_length:
        return _TOKENS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    return _TOKENS.sub(lambda match: '""' if match[0][0] in "\"'" else " ", source)


def _depths(text: str) -> list[int]:
    depth, depths = 0, []
    for char in text:
        depth += (char == "{") - (char == "}")
        depths.append(depth)
    return depths


def _is_test(method: JavaMethod, is_old: bool) -> bool:
    if is_old:
        return method.name.startswith("test")
    marks = re.findall(r"@(?:[\w.]+\.)?(\w+)", method.annotations)
    return "Test" in marks and "Ignore" not in marks
