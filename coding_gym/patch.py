"""Parses unified git diffs, and creates them from texts.

In sandboxes, git applies the patches.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

from coding_gym.errors import PatchError

_NO_NEWLINE = "\\ No newline at end of file"
_HUNK = re.compile(r"^@@ -(\d{1,18})(?:,(\d{1,18}))? \+(\d{1,18})(?:,(\d{1,18}))? @@")
_GIT_FILE = re.compile(r"^diff --git ", re.MULTILINE)
_PLAIN_FILE = re.compile(r"--- .*\n\+\+\+ .*\n@@ ")  # as ``diff -u`` writes it
_HEADER_FIELD = re.compile(
    r"^(---|\+\+\+|(?:rename|copy) (?:from|to)|(?:new|deleted) file mode) (.*)$", re.MULTILINE
)
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}
_UNUSUAL = re.compile(r'[\x00-\x1f\x7f"\\]')


class Hunk(NamedTuple):
    """Consecutive lines of a patch: changed lines and their context.

    Attributes:
        old_start: Number of the first of these lines in the old file, from 1.
        new_start: Number of the first of these lines in the new file, from 1.
        body: The lines without line ends, each with its sign in front.
    """

    old_start: int
    new_start: int
    body: list[str]

    def lines(self) -> Iterator[str]:
        """Yields the lines with their signs and line ends; the last line can lack its line end."""
        for line, next_line in pairwise([*self.body, ""]):
            if line != _NO_NEWLINE:
                yield line if next_line == _NO_NEWLINE else f"{line}\n"


@dataclass(frozen=True)
class FileChange:
    """The part of a patch that changes one file.

    Attributes:
        old_path: The path before the change, or None for a new file.
        new_path: The path after the change, or None for a deleted file.
        text: The diff from its ``diff --git`` line on.
    """

    old_path: str | None
    new_path: str | None
    text: str

    @property
    def path(self) -> str:
        """The path after the change; for a deleted file, the path before it."""
        return self.new_path or self.old_path or ""

    @property
    def is_binary(self) -> bool:
        """Whether the content is binary data instead of lines."""
        return "\nGIT binary patch\n" in self.text or "\nBinary files " in self.text

    def hunks(self) -> Iterator[Hunk]:
        """Yields the hunks.

        Raises:
            PatchError: A hunk does not have the numbers of lines that its header states.
        """
        lines = _split_lines(self.text)
        for index, line in enumerate(lines):
            if header := _HUNK.match(line):
                if (body := _body(header, lines, index + 1)) is None:
                    problem = f"the hunk {header[0]} of {self.path} has wrong line counts"
                    raise PatchError(f"{problem}; create the patch with git diff")
                yield Hunk(int(header[1]), int(header[3]), body)

    def apply(self, text: str) -> str:
        """Returns the text of the file after the change; hunks must apply at their line numbers.

        Raises:
            PatchError: A hunk is malformed or does not apply, or the change is binary.
        """
        if self.is_binary:
            raise PatchError(f"the change of {self.path} is binary; only git can apply it")
        source, result, position = _split_lines(text), [], 0
        for hunk in self.hunks():
            lines = list(hunk.lines())
            old_lines = [line[1:] for line in lines if line[0] in " -"]
            # The header of a hunk without old lines has the number of the line before the hunk.
            first = hunk.old_start - 1 if old_lines else hunk.old_start
            if first < position or source[first : first + len(old_lines)] != old_lines:
                raise PatchError(f"patch does not apply to {self.path} at line {first + 1}")
            result += source[position:first] + [line[1:] for line in lines if line[0] in " +"]
            position = first + len(old_lines)
        return "".join(result + source[position:])


@dataclass(frozen=True)
class Patch:
    """A unified git diff.

    Attributes:
        text: The diff; surrogate escapes represent bytes that are not UTF-8.
        excluded: New files, and new folders (with a trailing ``/``), that are not in the diff.
    """

    text: str = ""
    excluded: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_empty(self) -> bool:
        """Whether the patch changes nothing."""
        return not self.text.strip()

    @cached_property
    def files(self) -> tuple[FileChange, ...]:
        """The changes, one per file, in the order of the diff.

        Raises:
            PatchError: The text has no file header, or an unreadable file header.
        """
        if self.is_empty:
            return ()
        starts = [match.start() for match in _GIT_FILE.finditer(self.text)]
        starts = starts or plain_headers(self.text)
        if not starts:
            raise PatchError(f"not a unified diff: no file header in {self.text[:60]!r}")
        texts = (self.text[a:b] for a, b in pairwise([*starts, None]))
        return tuple(FileChange(*_paths_of(text), text) for text in texts)

    @property
    def paths(self) -> frozenset[str]:
        """All paths in the patch, before and after the change."""
        return frozenset(p for f in self.files for p in (f.old_path, f.new_path) if p)

    @classmethod
    def between(cls, before: Mapping[str, str], after: Mapping[str, str]) -> "Patch":
        """Returns the diff between two sets of files (text by path)."""
        paths = sorted(before.keys() | after.keys())
        changes = [(path, before.get(path), after.get(path)) for path in paths]
        return cls("".join(_diff(path, old, new) for path, old, new in changes if old != new))


def plain_headers(text: str) -> list[int]:
    """Returns the positions of the ``---`` lines that begin a file, in a diff not written by git.

    A removed line can look like such a header, so whole hunks are skipped.
    """
    lines = _split_lines(text)
    positions = list(accumulate(map(len, lines), initial=0))
    headers, index = [], 0
    while index < len(lines):
        if header := _HUNK.match(lines[index]):
            index += len(_body(header, lines, index + 1) or ())
        elif _PLAIN_FILE.match(text, positions[index]):
            headers.append(positions[index])
        index += 1
    return headers


def quote(name: str) -> str:
    """Returns a path as in git diffs: quoted if it has a control character, quote or backslash."""
    if not _UNUSUAL.search(name):
        return name
    return '"' + _UNUSUAL.sub(lambda m: f"\\{ord(m[0]):03o}", name) + '"'


def _diff(path: str, old: str | None, new: str | None) -> str:
    """Returns the diff of one file from its texts; the text of a missing file is None."""
    before, after = quote(f"a/{path}"), quote(f"b/{path}")
    lines = [f"diff --git {before} {after}\n"]
    if old is None:
        lines.append("new file mode 100644\n")
    if new is None:
        lines.append("deleted file mode 100644\n")
    body = difflib.unified_diff(
        _split_lines(old or ""),
        _split_lines(new or ""),
        "/dev/null" if old is None else before,
        "/dev/null" if new is None else after,
    )
    lines += [line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}\n" for line in body]
    return "".join(lines)


def _split_lines(text: str) -> list[str]:
    """Splits a text after each line feed, as git does."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _body(header: re.Match[str], lines: Sequence[str], start: int) -> list[str] | None:
    """Returns the lines of a hunk without line ends; None if its header states other counts."""
    num_old, num_new = int(header[2] or 1), int(header[4] or 1)  # remaining lines; 1 by default
    body: list[str] = []
    for index in range(start, len(lines)):
        line = lines[index].removesuffix("\n") or " "
        is_over = num_old <= 0 and num_new <= 0 and line != _NO_NEWLINE
        if is_over or line[0] not in " -+\\":
            break
        num_old -= line[0] in " -"
        num_new -= line[0] in " +"
        body.append(line)
    return None if num_old or num_new else body


def _paths_of(text: str) -> tuple[str | None, str | None]:
    """Returns the paths of a file before and after its change, from the file's part of the diff."""
    header = text.split("\n@@ ", 1)[0].split("\nGIT binary patch", 1)[0]
    first_line = header.split("\n", 1)[0]
    old_default, new_default = _git_line_paths(first_line)
    fields = dict(reversed(_HEADER_FIELD.findall(header)))  # keeps the first of equal keys
    old_path = _header_path(fields, "---", "a/", "from", old_default)
    new_path = _header_path(fields, "+++", "b/", "to", new_default)
    if "new file mode" in fields:
        old_path = None
    if "deleted file mode" in fields:
        new_path = None
    if not (old_path or new_path):
        raise PatchError(f"cannot read the paths of {first_line!r}")
    return old_path, new_path


def _git_line_paths(line: str) -> tuple[str | None, str | None]:
    """Returns the paths of a ``diff --git`` line; unquoted paths must be equal."""
    pair = line.removeprefix("diff --git ")
    if pair.startswith('"'):
        match = re.match(r'("(?:[^"\\]|\\.)*") (.*)$', pair)
        old_path, new_path = match.groups() if match else ("", "")
    else:
        middle = len(pair) // 2
        old_path, new_path = pair[:middle], pair[middle + 1 :]
    return _strip_prefix(old_path, "a/"), _strip_prefix(new_path, "b/")


def _header_path(
    fields: Mapping[str, str], marker: str, prefix: str, preposition: str, default: str | None
) -> str | None:
    if marker in fields:
        return _strip_prefix(fields[marker], prefix)
    path = fields.get(f"rename {preposition}", fields.get(f"copy {preposition}"))
    return default if path is None else _unquote(path)


def _strip_prefix(name: str, prefix: str) -> str | None:
    name = _unquote(name.split("\t")[0])
    return None if name == "/dev/null" else name.removeprefix(prefix)


def _unquote(name: str) -> str:
    """Returns a path without git's C-style quotes and escapes."""
    if not (name.startswith('"') and name.endswith('"') and len(name) > 1):
        return name
    raw = name[1:-1].encode("utf-8", "surrogateescape")
    try:
        unescaped = _ESCAPE.sub(
            lambda m: bytes([_ESCAPED[m[1]] if m[1] in _ESCAPED else int(m[1], 8)]), raw
        )
    except ValueError:
        raise PatchError(f"cannot read the quoted path {name}") from None
    return unescaped.decode("utf-8", "surrogateescape")
