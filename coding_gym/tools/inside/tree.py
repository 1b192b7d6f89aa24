"""The source files of the workspace, read with bounds: a policy may have put anything there."""

# ruff: noqa: PTH118 - many paths: plain ones take a third of the time

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

LANGUAGES = {
    "python": ("py", "pyi"),
    "javascript": ("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"),
    "java": ("java", "kt", "kts", "scala", "cs", "swift"),
    "go": ("go",),
    "rust": ("rs",),
    "c": ("c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx"),
    "ruby": ("rb",),
    "php": ("php",),
}
MAX_FILE_BYTES = 512 << 10
_MAX_TOTAL_BYTES = 24 << 20
_MAX_FILES = 5000
_MAX_ENTRIES = 100_000
_MAX_DEPTH = 40
_LEFT_OUT = {"node_modules", "__pycache__", "venv", "site-packages", "target", "dist", "build"}
_LINE_CHARS = 160
_BY_SUFFIX = {suffix: name for name, suffixes in LANGUAGES.items() for suffix in suffixes}


class SourceFile(NamedTuple):
    """A file that holds code.

    Attributes:
        path: Relative to the workspace, with slashes.
        language: A key of `LANGUAGES`.
        data: Its bytes.
    """

    path: str
    language: str
    data: bytes

    def lines(self) -> list[str]:
        """Returns its lines as text, without line ends."""
        return self.data.decode("utf-8", "replace").split("\n")


class Tree:
    """The source files below a folder, in the order of their paths.

    Args:
        root: The folder.

    Attributes:
        num_left_out: Files that were too large, no text, or too many.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self.num_left_out = 0

    def files(self, needle: bytes = b"") -> Iterator[SourceFile]:
        """Yields the files, or only those that hold some bytes."""
        room = _MAX_TOTAL_BYTES
        for number, (path, language) in enumerate(sorted(self._paths())):
            data = None if number >= _MAX_FILES else read_regular(os.path.join(self._root, path))
            if data is None or b"\0" in data or len(data) > room:
                self.num_left_out += 1
            elif needle in data:
                room -= len(data)
                yield SourceFile(path, language, data)

    def _paths(self) -> Iterator[tuple[str, str]]:
        waiting = [("", 0)]
        num_entries = 0
        while waiting and num_entries < _MAX_ENTRIES:
            folder, depth = waiting.pop()
            try:
                entries = list(os.scandir(os.path.join(self._root, folder)))
            except OSError:
                continue  # unreadable, or gone
            num_entries += len(entries)
            for entry in entries:
                path = folder + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if depth < _MAX_DEPTH and _is_followed(entry.name):
                        waiting.append((path + "/", depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    language = language_of(entry.name)
                    if language:
                        yield path, language


def _is_followed(folder: str) -> bool:
    return not folder.startswith(".") and folder not in _LEFT_OUT


def language_of(path: str) -> str:
    """Returns the language that a path's suffix says, or ""."""
    return _BY_SUFFIX.get(path.rpartition(".")[2].lower(), "")


def read_regular(path: str) -> bytes | None:
    """Returns the bytes of a regular file of bounded size that is no link, else None."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    with os.fdopen(number, "rb") as file:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return None
        return file.read(MAX_FILE_BYTES)


def printable(text: str, max_chars: int = _LINE_CHARS) -> str:
    """Returns one line that no file name and no code can break out of, cut to a length."""
    line = text[: max_chars + 1].replace("\t", "    ").rstrip("\r\n ")
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    return line if len(line) <= max_chars else line[:max_chars] + "..."
