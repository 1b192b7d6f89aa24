"""Applies patches of the toolset ``codex``: unified diffs and ``*** Begin Patch`` envelopes.

``git apply`` changes the files inside the sandbox, all of them or none. An envelope has no line
numbers, so it is converted to a unified diff. As in Codex, each change applies at the first match
after the previous change, and a moved file becomes a new file, which is not executable.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from coding_gym.patch import Patch, plain_headers
from coding_gym.tools import files
from coding_gym.tools.toolset import Refusal, ToolContext, name_of

MAX_PATCH_CHARS = 1 << 20
MAX_WORK = 5_000_000
"""Maximum of (lines of a file) * (changes + anchors), which bounds the time to find matches."""

_BEGIN = re.compile(r"^\*\*\* Begin Patch[ \t\r]*$", re.MULTILINE)
_END = re.compile(r"^\*\*\* End Patch[ \t\r]*$", re.MULTILINE)
_SECTION = re.compile(r"^\*\*\* (Add|Delete|Update) File: (.+)$", re.MULTILINE)
_MOVE = "*** Move to: "
_END_OF_FILE = "*** End of File"
# The header of a file in a diff that git did not write. A line ``diff`` is added before it, to end
# the previous hunk.
_PLAIN_HEADER = re.compile(r"^--- (?:a/)?(.+)\n\+\+\+ (?:b/)?(.+)\n(?=@@ )", re.MULTILINE)

# Accepts hunks without context lines (--unidiff-zero) and with wrong counts (--recount).
_APPLY = "git apply --recount --unidiff-zero --whitespace=nowarn --numstat --apply -z -"
_APPLIED = re.compile(r"(?:^|(?<=\0))[\d-]+\t[\d-]+\t([^\0]+)\0", re.MULTILINE)
_NO_PATCH = "No valid patches in input"


def apply_patch(context: ToolContext, patch: str) -> list[str]:
    """Applies a patch completely or not at all, and returns the paths of the changed files.

    Raises:
        Refusal: The patch does not apply, is not a diff or an envelope, or is too long.
        SandboxError: The sandbox is closed or died.
    """
    if len(patch) > MAX_PATCH_CHARS:
        raise Refusal(f"`patch` must have at most {MAX_PATCH_CHARS} characters, got {len(patch)}")
    diff = _envelope_as_diff(context, patch) if _BEGIN.search(patch) else _git_form(patch)
    data = diff.encode("utf-8", "surrogateescape")
    result = files.run_script(context, _APPLY, env={"LC_ALL": "C"}, stdin=data)
    if _NO_PATCH in result.output:
        raise Refusal(
            "`patch` must be a unified diff with lines ---, +++ and @@ for each file, or an "
            "envelope from *** Begin Patch to *** End Patch"
        )
    if not result.ok:
        lines = [re.sub("^(error|warning): ", "", line) for line in result.output.splitlines()]
        reason = "it took too long" if result.timed_out else f"{'; '.join(lines):.500}"
        raise Refusal(reason)
    return list(dict.fromkeys(_APPLIED.findall(result.output)))


def _git_form(diff: str) -> str:
    """Returns a unified diff with the headers of a git diff."""
    if not diff.endswith("\n"):
        diff += "\n"
    if "diff --git " in diff:
        return diff
    header_starts = set(plain_headers(diff))

    def in_git_form(header: re.Match[str]) -> str:
        # Wrong counts can put a header inside the previous hunk; git's prefix still identifies it.
        if header.start() not in header_starts and "\n+++ b/" not in header[0]:
            return header[0]
        git_header = header.expand(r"diff -u\n--- a/\1\n+++ b/\2\n")
        return re.sub("[ab]//dev/null", "/dev/null", git_header)

    return _PLAIN_HEADER.sub(in_git_form, diff)


@dataclass(slots=True)
class _Change:
    """Consecutive lines of an update, each with the prefix ``" "``, ``"-"`` or ``"+"``.

    Attributes:
        anchors: Lines of the file above the change.
        is_at_end: Whether the change is at the end of the file.
    """

    anchors: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    is_at_end: bool = False


def _envelope_as_diff(context: ToolContext, patch: str) -> str:
    """Returns the diff between the files before and after all sections of an envelope."""
    text = _BEGIN.split(patch.replace("\r\n", "\n"), maxsplit=1)[1]
    text = "\n".join(line for line in text.split("\n") if not _BEGIN.match(line))
    *envelopes, _ = _END.split(text) if _END.search(text) else (text, "")
    preamble, *parts = _SECTION.split("\n".join(envelopes))  # kind, path, body, kind, path, body …
    if preamble.strip() or not parts:
        raise Refusal(
            f"{preamble.strip()!r:.80} is not a header; each file of this patch begins with "
            "`*** Add File: path`, `*** Update File: path` or `*** Delete File: path`"
        )
    old_texts: dict[str, str] = {}
    new_files: dict[str, files.TextFile] = {}
    for kind, path, body in zip(parts[::3], map(str.strip, parts[1::3]), parts[2::3], strict=True):
        lines = body.strip("\n").split("\n") if body.strip("\n") else []
        relative_path = files.relative_path(context, path)
        if kind == "Add":
            new_files[relative_path] = _new_file(path, lines)
            continue
        file = new_files.pop(relative_path, None)
        if file is None:
            file = files.read_file(context, path)
            old_texts[relative_path] = _raw(file)
        if kind == "Update":
            if lines and lines[0].startswith(_MOVE):
                path = lines.pop(0).removeprefix(_MOVE).strip()
            text = _changed_text(file, list(_changes(path, lines)))
            new_files[files.relative_path(context, path)] = replace(file, path=path, text=text)
    return Patch.between(old_texts, {path: _raw(file) for path, file in new_files.items()}).text


def _new_file(path: str, lines: Sequence[str]) -> files.TextFile:
    """Returns the file that a section ``Add File`` creates."""
    invalid_line = next((line for line in lines if not line.startswith("+")), None)
    if invalid_line is not None:
        raise Refusal(f"{path}: each line of a new file begins with +, got {invalid_line!r:.80}")
    return files.TextFile(path, "".join(f"{line[1:]}\n" for line in lines))


def _raw(file: files.TextFile) -> str:
    """Returns a file's text with its original line ends."""
    return file.encode(file.text).decode("utf-8", "surrogateescape")


def _changes(path: str, body: Sequence[str]) -> Iterator[_Change]:
    """Yields the changes of a section ``Update File``."""
    change = _Change()
    for line in (*body, "@@"):
        if line.startswith("@@") or line == _END_OF_FILE:
            if change.lines:
                change.is_at_end = line == _END_OF_FILE
                yield change
                change = _Change()
            anchor = line.removeprefix("@@").removesuffix("@@").strip()
            # Line numbers, as in `@@ -1,2 +1,2 @@`, are ignored.
            if anchor and line != _END_OF_FILE and not anchor.startswith("-"):
                change.anchors.append(anchor)
        elif line[:1] in ("", " ", "+", "-"):
            change.lines.append(line or " ")
        else:
            raise Refusal(f"{path}: each line must begin with +, - or a space, got {line!r:.80}")


def _changed_text(file: files.TextFile, changes: Sequence[_Change]) -> str:
    lines = files.lines_of(file.text)
    if len(lines) * sum(1 + len(change.anchors) for change in changes) > MAX_WORK:
        raise Refusal(
            f"{name_of(file.path)}: too many changes of a file with {len(lines)} lines; split the "
            "patch"
        )
    result: list[str] = []
    position = 0
    for change in changes:
        begin = position
        for anchor in change.anchors:
            begin = _find(file.path, lines, [anchor], begin) + 1
        old = [line[1:] for line in change.lines if line[0] != "+"]
        start = begin if change.anchors else len(lines)
        if old:
            start = _find(file.path, lines, old, begin, is_at_end=change.is_at_end)
        result += lines[position:start]
        position = start + len(old)
        file_lines = iter(lines[start:position])  # unchanged lines keep the file's white space
        for line in change.lines:
            text = line[1:] if line[0] == "+" else next(file_lines)
            result += [] if line[0] == "-" else [text]
    result += lines[position:]
    return "\n".join([*result, ""])


def _find(
    path: str, lines: list[str], old: list[str], begin: int, *, is_at_end: bool = False
) -> int:
    """Returns the index of the first match of the lines ``old`` from index ``begin``.

    Lines are compared exactly. Without a match, they are compared without trailing white space,
    then without white space at both ends, as in Codex (codex-rs/apply-patch/src/seek_sequence.rs).
    """
    for normalize in (str, str.rstrip, str.strip):
        text = "\n".join(["", *map(normalize, lines[begin:]), ""])
        needle = "\n".join(["", *map(normalize, old), ""])
        position = text.find(needle)
        if is_at_end:
            position = len(text) - len(needle) if text.endswith(needle) else -1
        if position >= 0:
            return begin + text.count("\n", 0, position)
    place = "at the end" if is_at_end else f"after line {begin}"
    raise Refusal(f"{name_of(path)}: no match {place} for the lines that begin {old[0]!r:.80}")
