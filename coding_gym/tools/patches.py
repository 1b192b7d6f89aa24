"""Patches as policies write them: unified diffs, and Codex's ``*** Begin Patch`` envelopes.

Unified diffs may be sloppy where the meaning is plain: counts in ``@@`` lines may be wrong or
missing, blank context lines may lack their blank, and a fence around the patch is dropped. A change
in an envelope has no line numbers: a line behind ``@@`` names a line above it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from coding_gym.errors import PatchError
from coding_gym.patch import split_files
from coding_gym.tools.toolset import Refusal

MAX_PATCH_CHARS = 1 << 20
MAX_FILES = 100  # of one patch; reading stops behind them
MAX_HUNKS = 500
MAX_ANCHORS = 8
"""Lines behind ``@@`` that one change may stand below; Codex nests two or three."""

BEGIN = "*** Begin Patch"
END = "*** End Patch"
BEGIN_LINE, END_LINE = (
    re.compile(rf"^{re.escape(mark)}[ \t\r]*$", re.MULTILINE) for mark in (BEGIN, END)
)
_NO_NEWLINE = "\\"
_SIGNATURE = "-- "  # behind a patch that git wrote as a mail
_KINDS = ("+", "-", " ")
_HUNK = re.compile(r"@@(?: -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@)?")
_BARE_HUNK = re.compile(r"^@@[ \t]*$|^@@ (?!-\d+(?:,\d+)? \+\d+(?:,\d+)? @@).*$", re.MULTILINE)
_MODE = re.compile(r"^(?:new file mode|new mode) (100644|100755)$", re.MULTILINE)
_FILE_HEADER = re.compile(r"^\*\*\* (Add|Delete|Update) File: (.*)$", re.MULTILINE)
_FENCE = re.compile(r"\A\s*```[\w-]*\n(.*?)\n?```\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Hunk:
    """One piece of a change to a text.

    Attributes:
        lines: Its lines, each behind ``" "``, ``"-"`` or ``"+"``.
        start: The line, from 1, where the patch says that it begins; None where it does not say.
        anchors: Lines that stand above it, in this order, somewhere behind the hunk before.
        at_end: Whether it must end with the text.
        is_bare_before: Whether the patch says that the text ends without a line end, before …
        is_bare_after: … and after.
    """

    lines: tuple[str, ...]
    start: int | None = None
    anchors: tuple[str, ...] = ()
    at_end: bool = False
    is_bare_before: bool = False
    is_bare_after: bool = False

    @property
    def before(self) -> list[str]:
        """The lines that it expects."""
        return [line[1:] for line in self.lines if line[0] in " -"]


@dataclass(frozen=True, slots=True)
class FilePatch:
    """A patch's changes to one file.

    Attributes:
        old_path: The path before, or None for a new file.
        new_path: The path after, or None for a deleted file.
        hunks: Changes to its text.
        mode: ``644`` or ``755`` where the patch sets it, else "".
        is_copy: Whether the file at the old path stays.
        is_loose: Whether white space is forgiven, and a hunk goes to the first place that fits
            where several do, as Codex does.
    """

    old_path: str | None
    new_path: str | None
    hunks: tuple[Hunk, ...] = ()
    mode: str = ""
    is_copy: bool = False
    is_loose: bool = False


def read_patch(text: str) -> list[FilePatch]:
    """Reads a patch of either kind.

    Raises:
        Refusal: It is neither, or too large.
    """
    if len(text) > MAX_PATCH_CHARS:
        raise Refusal(f"the patch has {len(text)} characters, more than {MAX_PATCH_CHARS}")
    text = text.replace("\r\n", "\n")
    if fenced := _FENCE.match(text):
        text = fenced[1]
    if begin := BEGIN_LINE.search(text):  # it may stand in a here-document
        ends = [end.end() for end in END_LINE.finditer(text, begin.end())]
        text = text[begin.start() : ends[-1] if ends else None]
    is_envelope = text.lstrip().startswith("*** ")
    files = list(islice((_read_envelope if is_envelope else _read_unified)(text), MAX_FILES + 1))
    if not files:
        raise Refusal("the patch changes nothing")
    num_hunks = sum(len(file.hunks) for file in files)
    if len(files) > MAX_FILES or num_hunks > MAX_HUNKS:
        raise Refusal(
            f"the patch has at least {len(files)} files and {num_hunks} hunks, more than "
            f"{MAX_FILES} and {MAX_HUNKS}; split it"
        )
    return files


def _read_unified(text: str) -> Iterator[FilePatch]:
    # Headers without numbers get the blank that finds them as headers.
    text = _BARE_HUNK.sub("@@ ", text)
    try:
        changes = list(split_files(text))
    except PatchError as error:
        raise Refusal(
            "the patch is no unified diff: each file needs its lines `--- a/path` and "
            "`+++ b/path`, and then hunks that begin with `@@`"
        ) from error
    for change in changes:
        if change.is_binary:
            raise Refusal(f"{change.path}: binary patches cannot be applied; use a command")
        lines = change.text.split("\n")
        first = next((i for i, line in enumerate(lines) if line.startswith("@@")), len(lines))
        header = "\n".join(lines[:first])
        mode = _MODE.search(header)
        yield FilePatch(
            old_path=change.old_path,
            new_path=change.new_path,
            hunks=tuple(islice(_hunks(lines[first:]), MAX_HUNKS + 1)),
            mode=mode[1][3:] if mode else "",
            is_copy="\ncopy from " in header,
        )


def _hunks(lines: Sequence[str]) -> Iterator[Hunk]:
    at = 0
    while at < len(lines):
        header = _HUNK.match(lines[at])
        at += 1
        if header is not None:  # else blank lines, or talk behind the last hunk
            end = _counted_end(lines, at, header)
            yield _hunk(lines[at:end], None if header[1] is None else int(header[1]))
            at = end


def _counted_end(lines: Sequence[str], begin: int, header: re.Match[str]) -> int:
    """Returns where a hunk's body ends: by its counts if they can be right, else at a header."""
    if header[1] is not None:
        old_left, new_left = (1 if n is None else int(n) for n in (header[2], header[4]))
        at = begin
        while at < len(lines) and (old_left > 0 or new_left > 0):
            kind = lines[at][:1] or " "
            if kind not in " +-\\":
                break
            old_left -= kind in " -"
            new_left -= kind in " +"
            at += 1
        while at < len(lines) and lines[at].startswith(_NO_NEWLINE):
            at += 1
        is_over = at == len(lines) or lines[at] == _SIGNATURE or lines[at][:1] not in _KINDS
        if old_left == new_left == 0 and is_over:
            return at
    at = begin
    while at < len(lines) and lines[at][:1] in ("", " ", "+", "-", "\\"):
        at += 1
    return begin + len(_without_blank_end(lines[begin:at]))


def _hunk(body: Sequence[str], start: int | None) -> Hunk:
    kept: list[str] = []
    is_bare_before = is_bare_after = False
    for line in body:
        if line.startswith(_NO_NEWLINE):
            last = kept[-1][0] if kept else " "
            is_bare_before |= last in " -"
            is_bare_after |= last in " +"
        else:
            kept.append(line or " ")
    return Hunk(
        tuple(kept), start=start, is_bare_before=is_bare_before, is_bare_after=is_bare_after
    )


def _read_envelope(text: str) -> Iterator[FilePatch]:
    # Only lines that begin so: behind a blank the same is a line of a file.
    lines = [line for line in text.strip().split("\n") if line.rstrip() not in (BEGIN, END)]
    before, *parts = _FILE_HEADER.split("\n".join(lines))
    wrong = [line for line in before.split("\n") if line.strip()]
    for kind, path, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        wrong += [] if path.strip() else [f"*** {kind} File: {path}"]
        if wrong:
            break
        yield _section(kind, path.strip(), body.split("\n")[1:])
    if wrong:
        raise Refusal(
            f"{wrong[0]!r:.80} is no header; the files of this patch begin with `*** Add File: "
            "path`, `*** Update File: path` or `*** Delete File: path`"
        )


def _section(kind: str, path: str, body: Sequence[str]) -> FilePatch:
    if kind == "Delete":
        return FilePatch(path, None)
    if kind == "Add":
        body = _without_blank_end(body)
        wrong = [line for line in body if not line.startswith("+")]
        if wrong:
            raise Refusal(f"{path}: each line of a new file begins with +, got {wrong[0]!r:.80}")
        return FilePatch(None, path, (Hunk(tuple(body), start=0),) if body else ())
    new_path = path
    if body and body[0].startswith("*** Move to: "):
        new_path = body[0].removeprefix("*** Move to: ").strip()
        body = body[1:]
    hunks = islice(_chunks(path, body), MAX_HUNKS + 1)
    return FilePatch(path, new_path, tuple(hunks), is_loose=True)


def _without_blank_end(body: Sequence[str]) -> Sequence[str]:
    end = len(body)
    while end and not body[end - 1]:
        end -= 1
    return body[:end]


def _chunks(path: str, body: Sequence[str]) -> Iterator[Hunk]:
    anchors: list[str] = []
    lines: list[str] = []
    for line in (*_without_blank_end(body), "@@"):
        if line.startswith(("@@", "*** End of File")):
            if lines:
                at_end = not line.startswith("@@")
                yield Hunk(tuple(lines), anchors=tuple(anchors), at_end=at_end)
                anchors, lines = [], []
            anchor = line.removeprefix("@@").removesuffix("@@").strip()
            # Line numbers do not belong here; the lines themselves say where.
            if anchor and line.startswith("@@") and not anchor.startswith("-"):
                anchors.append(anchor)
            if len(anchors) > MAX_ANCHORS:
                raise Refusal(
                    f"{path}: more than {MAX_ANCHORS} lines @@ stand above one change, the last of "
                    f"them {line!r:.80}; name one or two, and give more lines around the change"
                )
        elif line[:1] in ("", " ", "+", "-"):
            lines.append(line or " ")
        else:
            raise Refusal(f"{path}: lines of a change begin with +, - or a blank, got {line!r:.80}")
