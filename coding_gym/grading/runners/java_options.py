"""What a Java task says of its sources, class path and compiler, in one line of options."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

# Options of javac whose value is the next word.
_WITH_VALUE = {
    *("-encoding", "-source", "--source", "-target", "--target", "--release"),
    *("--add-modules", "--add-exports", "--add-reads", "--limit-modules"),
}
_CLASS_PATH = {"-cp", "-classpath", "--class-path"}
# They would run programs of the tree inside the compiler, or put its output elsewhere.
_REFUSED = {
    *("-d", "-s", "-h", "-processor", "-processorpath", "--processor-path", "-sourcepath"),
    *("--source-path", "--module-path", "-p", "-proc:only", "-proc:full"),
}
_LAYOUTS = (
    ("src/main/java", "src/test/java", "src/main/resources", "src/test/resources"),
    ("src/java", "src/test"),
    ("src", "tests", "test"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaOptions:
    """How a Java project is compiled and run.

    Attributes:
        roots: Source folders, which are on the class path too, for what is not Java in them.
        sources: More files that javac must read, such as classes that are only loaded by name.
        class_path: Jars and folders, ``lib/*`` for all jars of a folder.
        javac: More options of javac.
        java: Options of the virtual machine that runs the tests.
    """

    roots: tuple[str, ...]
    sources: tuple[str, ...] = ()
    class_path: tuple[str, ...] = ()
    javac: tuple[str, ...] = ()
    java: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads a task's ``test_command``; see `coding_gym.grading.runners.java_runner`.

        Raises:
            ValueError: A word has no meaning here, or lacks its value.
        """
        roots: list[str] = []
        sources: list[str] = []
        class_path: list[str] = []
        javac: list[str] = []
        java: list[str] = []
        words = iter(shlex.split(text))
        for word in words:
            if word in _CLASS_PATH:
                class_path += [part for part in _value(word, words).split(":") if part]
            elif word in _WITH_VALUE:
                javac += [word, _value(word, words)]
            elif word.split("=")[0] in _REFUSED or word.startswith("@"):
                raise ValueError(f"option {word!r} cannot be given")
            elif word.startswith("-J"):
                java.append(word.removeprefix("-J"))
            elif word.startswith("-"):
                javac.append(word)
            else:
                (sources if word.endswith(".java") else roots).append(word.rstrip("/"))
        return cls(
            roots=tuple(roots or dict.fromkeys(root for one in _LAYOUTS for root in one)),
            sources=tuple(sources),
            class_path=tuple(class_path),
            javac=tuple(javac),
            java=tuple(java),
        )


def _value(word: str, words: Iterator[str]) -> str:
    found = next(words, None)
    if found is None:
        raise ValueError(f"option {word!r} lacks its value")
    return found
