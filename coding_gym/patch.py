"""A change to a tree as a unified git diff: reading it, making it from texts, applying it to texts.

Applying to real trees is git's work, inside a sandbox; what is here is exact and without fuzz.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from coding_gym.errors import PatchError

_NO_NEWLINE = "\\ No newline at end of file"
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}


@dataclass(frozen=True)
class FileChange:
    """The part of a patch that is about one file.

    Attributes:
        old_path: The path before, or None for a new file.
        new_path: The path after, or None for a deleted file.
        text: The diff from its ``diff --git`` line on.
    """

    old_path: str | None
    new_path: str | None
    text: str

    @property
    def path(self) -> str:
        """The path after the change, or before it where the file was deleted."""
        return self.new_path or self.old_path or ""

    @property
    def is_binary(self) -> bool:
        """Whether the content is given as binary data instead of lines."""
        return "\nGIT binary patch\n" in self.text or "\nBinary files " in self.text

    def hunks(self) -> Iterator[tuple[int, int, list[str]]]:
        """Yields (first old line, first new line, body lines) of every hunk, lines 1-based."""
        lines = self.text.split("\n")
        at = 0
        while at < len(lines):
            match = _HUNK.match(lines[at])
            at += 1
            if not match:
                continue
            old_left, new_left = (1 if n is None else int(n) for n in match.group(2, 4))
            body: list[str] = []
            while at < len(lines) and (old_left > 0 or new_left > 0 or lines[at] == _NO_NEWLINE):
                line = lines[at] or " "
                old_left -= line[0] in " -"
                new_left -= line[0] in " +"
                body.append(line)
                at += 1
            if old_left or new_left:
                raise PatchError(
                    f"patch for {self.path} is cut off inside the hunk {match.group()}"
                )
            yield int(match.group(1)), int(match.group(3)), body


@dataclass(frozen=True)
class Patch:
    """A unified git diff.

    Attributes:
        text: The diff; bytes that are not UTF-8 are held as surrogate escapes.
    """

    text: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not self.text.strip()

    @cached_property
    def files(self) -> tuple[FileChange, ...]:
        """The changes, one per file, in the order of the diff.

        Raises:
            PatchError: There is text, but no file header.
        """
        if self.is_empty:
            return ()
        starts = [m.start() for m in re.finditer(r"^diff --git ", self.text, re.MULTILINE)]
        if not starts:
            return tuple(_plain_files(self.text))
        ends = [*starts[1:], len(self.text)]
        return tuple(_read_file(self.text[a:b]) for a, b in zip(starts, ends, strict=True))

    @property
    def paths(self) -> frozenset[str]:
        """Every path that the patch names, before or after."""
        return frozenset(p for f in self.files for p in (f.old_path, f.new_path) if p)

    @classmethod
    def between(cls, before: Mapping[str, str], after: Mapping[str, str]) -> "Patch":
        """Returns the diff that leads from one set of files (path to text) to another."""
        parts = []
        for path in sorted(before.keys() | after.keys()):
            old, new = before.get(path), after.get(path)
            if old != new:
                parts.append(_diff_file(path, old, new))
        return cls("".join(parts))

    def apply(self, files: Mapping[str, str], *, reverse: bool = False) -> dict[str, str]:
        """Returns the files (path to text) after the patch, or before it with ``reverse``.

        Raises:
            PatchError: A line that the patch expects is not where it says, or a file is missing,
                is in the way, or is binary.
        """
        result = dict(files)
        for change in self.files:
            if change.is_binary:
                raise PatchError(f"{change.path} is binary; only git can apply that")
            old_path, new_path = change.old_path, change.new_path
            if reverse:
                old_path, new_path = new_path, old_path
            if old_path is not None and old_path not in result:
                raise PatchError(f"patch changes {old_path}, which is not in the tree")
            if old_path is None and new_path in result:
                raise PatchError(f"patch creates {new_path}, which is in the tree already")
            text = result.pop(old_path) if old_path is not None else ""
            patched = _apply_hunks(text, change, reverse)
            if new_path is not None:
                result[new_path] = patched
        return result


def _read_file(text: str) -> FileChange:
    header = text.split("\n@@ ", 1)[0].split("\nGIT binary patch", 1)[0]
    fields: dict[str, str] = dict(
        re.findall(r"^(rename from|rename to|copy from|copy to) (.*)$", header, re.MULTILINE)
    )
    old = re.search(r"^--- (.*)$", header, re.MULTILINE)
    new = re.search(r"^\+\+\+ (.*)$", header, re.MULTILINE)
    old_path, new_path = _git_line_paths(header.split("\n", 1)[0])
    if old:
        old_path = _strip_prefix(old.group(1), "a/")
    elif "rename from" in fields or "copy from" in fields:
        old_path = _unquote(fields.get("rename from", fields.get("copy from", "")))
    if new:
        new_path = _strip_prefix(new.group(1), "b/")
    elif "rename to" in fields or "copy to" in fields:
        new_path = _unquote(fields.get("rename to", fields.get("copy to", "")))
    if re.search(r"^new file mode ", header, re.MULTILINE):
        old_path = None
    if re.search(r"^deleted file mode ", header, re.MULTILINE):
        new_path = None
    if not (old_path or new_path):
        raise PatchError(f"cannot read the paths of {header.splitlines()[0]!r}")
    return FileChange(old_path, new_path, text)


def _plain_files(text: str) -> Iterator[FileChange]:
    """Reads a diff without ``diff --git`` lines, as plain ``diff -u`` writes it."""
    starts = [m.start() for m in re.finditer(r"^--- .*\n\+\+\+ .*\n@@ ", text, re.MULTILINE)]
    if not starts:
        raise PatchError(f"not a unified diff: no file header in {text[:60]!r}")
    for a, b in zip(starts, [*starts[1:], len(text)], strict=True):
        old_line, new_line = text[a:b].split("\n", 2)[:2]
        old_path = _strip_prefix(old_line[4:].split("\t")[0], "a/")
        new_path = _strip_prefix(new_line[4:].split("\t")[0], "b/")
        yield FileChange(old_path, new_path, text[a:b])


def _git_line_paths(line: str) -> tuple[str | None, str | None]:
    """Paths of a ``diff --git`` line, which is only unambiguous where both are the same."""
    rest = line.removeprefix("diff --git ")
    if rest.startswith('"'):
        match = re.match(r'("(?:[^"\\]|\\.)*") (.*)$', rest)
        old, new = match.groups() if match else ("", "")
    else:
        half = len(rest) // 2
        old, new = rest[:half], rest[half + 1 :]
    return _strip_prefix(old, "a/"), _strip_prefix(new, "b/")


def _strip_prefix(name: str, prefix: str) -> str | None:
    name = _unquote(name.split("\t")[0])
    return None if name == "/dev/null" else name.removeprefix(prefix)


def _unquote(name: str) -> str:
    """Undoes git's C-style quoting of unusual paths."""
    if not (name.startswith('"') and name.endswith('"') and len(name) > 1):
        return name
    raw = name[1:-1].encode("utf-8", "surrogateescape")
    plain = _ESCAPE.sub(
        lambda m: bytes([_ESCAPED[m[1]] if m[1] in _ESCAPED else int(m[1], 8)]), raw
    )
    return plain.decode("utf-8", "surrogateescape")


def _diff_file(path: str, old: str | None, new: str | None) -> str:
    lines = [f"diff --git a/{path} b/{path}\n"]
    if old is None:
        lines.append("new file mode 100644\n")
    if new is None:
        lines.append("deleted file mode 100644\n")
    body = difflib.unified_diff(
        _split(old or ""),
        _split(new or ""),
        "/dev/null" if old is None else f"a/{path}",
        "/dev/null" if new is None else f"b/{path}",
    )
    lines += [line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}\n" for line in body]
    return "".join(lines)


def _split(text: str) -> list[str]:
    """Splits at line feeds only, as git does, keeping them."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _apply_hunks(text: str, change: FileChange, reverse: bool) -> str:
    source, result, taken = _split(text), [], 0
    gone, come = ("+", "-") if reverse else ("-", "+")
    for old_start, new_start, body in change.hunks():
        old, new = _sides(body, gone, come)
        start = new_start if reverse else old_start
        first = start - 1 if old else start  # a hunk that removes nothing names the line before it
        if first < taken or source[first : first + len(old)] != old:
            raise PatchError(f"patch does not apply to {change.path} at line {first + 1}")
        result += source[taken:first] + new
        taken = first + len(old)
    return "".join(result + source[taken:])


def _sides(body: list[str], gone: str, come: str) -> tuple[list[str], list[str]]:
    """The lines that a hunk expects, and those it leaves, with their line ends."""
    old: list[str] = []
    new: list[str] = []
    for number, line in enumerate(body):
        if line == _NO_NEWLINE:
            continue
        bare = number + 1 < len(body) and body[number + 1] == _NO_NEWLINE
        content = line[1:] + ("" if bare else "\n")
        if line[0] in (" ", gone):
            old.append(content)
        if line[0] in (" ", come):
            new.append(content)
    return old, new
