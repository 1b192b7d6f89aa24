"""The text of unified git diffs: file headers, quoted paths, hunks."""

import difflib
import re
from collections.abc import Iterator

from coding_gym.errors import PatchError

_NO_NEWLINE = "\\ No newline at end of file"
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_MAX_DIGITS = 18  # git reads more, where they are zeros
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}
_UNUSUAL = re.compile(r'[\x00-\x1f\x7f"\\]')

Paths = tuple[str | None, str | None]
"""The path before, None for a new file, and the path after, None for a deleted one."""


def split_files(text: str) -> Iterator[tuple[Paths, str]]:
    """Yields the paths and the text of each file's part of a diff.

    Raises:
        PatchError: There is no file header, or one that cannot be read.
    """
    starts = [m.start() for m in re.finditer(r"^diff --git ", text, re.MULTILINE)]
    read = _git_paths
    if not starts:  # as plain ``diff -u`` writes it
        starts = [m.start() for m in re.finditer(r"^--- .*\n\+\+\+ .*\n@@ ", text, re.MULTILINE)]
        read = _plain_paths
    if not starts:
        raise PatchError(f"not a unified diff: no file header in {text[:60]!r}")
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        yield read(part), part


def hunks(text: str, path: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yields (first old line, first new line, body lines) of every hunk, lines 1-based.

    Raises:
        PatchError: A hunk is shorter than its header says, or a number there is longer than any
            file.
    """
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        match = _HUNK.match(lines[at])
        at += 1
        if not match:
            continue
        old_start, old_left, new_start, new_left = _numbers(match, path)
        body: list[str] = []
        while at < len(lines) and (old_left > 0 or new_left > 0 or lines[at] == _NO_NEWLINE):
            line = lines[at] or " "
            old_left -= line[0] in " -"
            new_left -= line[0] in " +"
            body.append(line)
            at += 1
        if old_left or new_left:
            raise PatchError(f"patch for {path} is cut off inside the hunk {match.group()}")
        yield old_start, new_start, body


def _numbers(match: re.Match[str], path: str) -> list[int]:
    """Returns the four numbers of a hunk's header; a count that is left out is 1."""
    texts = [n or "1" for n in match.groups()]
    if max(map(len, texts)) > _MAX_DIGITS:
        raise PatchError(
            f"patch for {path} has a hunk with a number of {max(map(len, texts))} digits"
        )
    return [int(text) for text in texts]


def sides(body: list[str], *, reverse: bool) -> tuple[list[str], list[str]]:
    """Returns the lines that a hunk expects, and those it leaves, with their line ends."""
    gone, come = ("+", "-") if reverse else ("-", "+")
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


def split_lines(text: str) -> list[str]:
    """Splits at line feeds only, as git does, keeping them."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def write_file(path: str, old: str | None, new: str | None) -> str:
    """Returns the diff of one file from its texts; None where it does not exist."""
    before, after = quote(f"a/{path}"), quote(f"b/{path}")
    lines = [f"diff --git {before} {after}\n"]
    if old is None:
        lines.append("new file mode 100644\n")
    if new is None:
        lines.append("deleted file mode 100644\n")
    body = difflib.unified_diff(
        split_lines(old or ""),
        split_lines(new or ""),
        "/dev/null" if old is None else before,
        "/dev/null" if new is None else after,
    )
    lines += [line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}\n" for line in body]
    return "".join(lines)


def quote(name: str) -> str:
    """Quotes a path as git does where it holds a control character, a quote or a backslash."""
    if not _UNUSUAL.search(name):
        return name
    letters = {chr(code): f"\\{key.decode()}" for key, code in _ESCAPED.items()}
    return '"' + _UNUSUAL.sub(lambda m: letters.get(m[0], f"\\{ord(m[0]):03o}"), name) + '"'


def _git_paths(text: str) -> Paths:
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
    return old_path, new_path


def _plain_paths(text: str) -> Paths:
    old_line, new_line = text.split("\n", 2)[:2]
    return _strip_prefix(old_line[4:], "a/"), _strip_prefix(new_line[4:], "b/")


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
    try:
        plain = _ESCAPE.sub(
            lambda m: bytes([_ESCAPED[m[1]] if m[1] in _ESCAPED else int(m[1], 8)]), raw
        )
    except ValueError:
        raise PatchError(f"cannot read the quoted path {name}") from None
    return plain.decode("utf-8", "surrogateescape")
