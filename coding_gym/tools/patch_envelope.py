"""Codex's envelopes, ``*** Begin Patch`` to ``*** End Patch``, read.

A change has no line numbers: a line behind ``@@`` says what stands above it, and it goes to the
first place behind that, as in Codex.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from coding_gym.tools.answers import Refusal
from coding_gym.tools.file_patch import MAX_HUNKS, FilePatch, Hunk

BEGIN = "*** Begin Patch"
END = "*** End Patch"
BEGIN_LINE, END_LINE = (
    re.compile(rf"^{re.escape(mark)}[ \t\r]*$", re.MULTILINE) for mark in (BEGIN, END)
)
MAX_ANCHORS = 8
"""Lines behind ``@@`` that one change may stand below; Codex nests two or three."""


def read_envelope(text: str) -> Iterator[FilePatch]:
    """Yields what an envelope does to each file.

    Raises:
        Refusal: It is none.
    """
    # Only lines that begin so: behind a blank the same is a line of a file.
    lines = [line for line in text.strip().split("\n") if line.rstrip() not in (BEGIN, END)]
    at = 0
    while at < len(lines):
        kind, _, path = lines[at].removeprefix("*** ").partition(": ")
        path = path.strip()
        if not lines[at].strip():
            at += 1
            continue
        if kind not in ("Add File", "Delete File", "Update File") or not path:
            raise Refusal(
                f"{lines[at]!r:.80} is no header; the files of this patch begin with `*** Add "
                "File: path`, `*** Update File: path` or `*** Delete File: path`"
            )
        end = next((i for i in range(at + 1, len(lines)) if _is_header(lines[i])), len(lines))
        yield _section(kind, path, lines[at + 1 : end])
        at = end


def _is_header(line: str) -> bool:
    return line.startswith(("*** Add File: ", "*** Delete File: ", "*** Update File: "))


def _section(kind: str, path: str, body: Sequence[str]) -> FilePatch:
    if kind == "Delete File":
        return FilePatch(path, None)
    if kind == "Add File":
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
                yield Hunk(tuple(lines), anchors=tuple(anchors), takes_first=True, at_end=at_end)
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
