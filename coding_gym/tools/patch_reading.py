"""Patches as policies write them, read: unified diffs, and Codex's ``*** Begin Patch`` envelopes.

Unified diffs may be sloppy where the meaning is plain: counts in ``@@`` lines may be wrong or
missing, blank context lines may lack their blank, and a fence around the patch is dropped.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from coding_gym import diff_text
from coding_gym.errors import PatchError
from coding_gym.tools.answers import Refusal
from coding_gym.tools.file_patch import MAX_FILES, MAX_HUNKS, FilePatch, Hunk
from coding_gym.tools.patch_envelope import BEGIN_LINE, END_LINE, read_envelope

MAX_PATCH_CHARS = 1 << 20

_NO_NEWLINE = "\\"
_SIGNATURE = "-- "  # behind a patch that git wrote as a mail
_KINDS = ("+", "-", " ")
_HUNK = re.compile(r"@@(?: -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@)?")
_BARE_HUNK = re.compile(r"^@@[ \t]*$|^@@ (?!-\d+(?:,\d+)? \+\d+(?:,\d+)? @@).*$", re.MULTILINE)
_MODE = re.compile(r"^(?:new file mode|new mode) (100644|100755)$", re.MULTILINE)
_FENCE = re.compile(r"\A\s*```[\w-]*\n(.*?)\n?```\s*\Z", re.DOTALL)


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
    read = read_envelope(text) if is_envelope else _read_unified(text)
    files = list(islice(read, MAX_FILES + 1))
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
        parts = list(diff_text.split_files(text))
    except PatchError as error:
        raise Refusal(
            "the patch is no unified diff: each file needs its lines `--- a/path` and "
            "`+++ b/path`, and then hunks that begin with `@@`"
        ) from error
    for (old, new), part in parts:
        if "\nGIT binary patch\n" in part or "\nBinary files " in part:
            raise Refusal(f"{new or old}: binary patches cannot be applied; use a command")
        lines = part.split("\n")
        first = next((i for i, line in enumerate(lines) if line.startswith("@@")), len(lines))
        header = "\n".join(lines[:first])
        mode = _MODE.search(header)
        yield FilePatch(
            old_path=old,
            new_path=new,
            hunks=tuple(islice(_hunks(lines[first:]), MAX_HUNKS + 1)),
            mode=mode[1][3:] if mode else "",
            is_copy="\ncopy from " in header,
        )


def _hunks(lines: Sequence[str]) -> Iterator[Hunk]:
    at = 0
    while at < len(lines):
        header = _HUNK.match(lines[at])
        if header is None:  # blank lines, or talk behind the last hunk
            at += 1
            continue
        at += 1
        end = _counted_end(lines, at, header)
        body = list(lines[at:end])
        at = end
        yield _hunk(body, None if header[1] is None else int(header[1]))


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
    end = next(
        (i for i in range(begin, len(lines)) if lines[i] and lines[i][0] not in " +-\\"),
        len(lines),
    )
    while end > begin and not lines[end - 1]:  # blank lines behind the hunk
        end -= 1
    return end


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
