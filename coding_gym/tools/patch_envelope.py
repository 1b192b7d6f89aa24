"""Codex's envelopes, ``*** Begin Patch`` to ``*** End Patch``, read.

A change has no line numbers: a line behind ``@@`` says what stands above it, and it goes to the
first place behind that, as in Codex.
"""

from collections.abc import Iterator, Sequence

from coding_gym.tools.answers import Refusal
from coding_gym.tools.file_patch import FilePatch, Hunk

BEGIN = "*** Begin Patch"
END = "*** End Patch"


def read_envelope(text: str) -> Iterator[FilePatch]:
    """Yields what an envelope does to each file.

    Raises:
        Refusal: It is none.
    """
    lines = text.strip().split("\n")
    lines = [line for line in lines if line.strip() not in (BEGIN, END)]
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


def _section(kind: str, path: str, body: list[str]) -> FilePatch:
    if kind == "Delete File":
        return FilePatch(path, None)
    if kind == "Add File":
        while body and not body[-1]:
            body = body[:-1]
        wrong = [line for line in body if not line.startswith("+")]
        if wrong:
            raise Refusal(f"{path}: each line of a new file begins with +, got {wrong[0]!r:.80}")
        return FilePatch(None, path, (Hunk(tuple(body), start=0),) if body else ())
    new_path = path
    if body and body[0].startswith("*** Move to: "):
        new_path = body[0].removeprefix("*** Move to: ").strip()
        body = body[1:]
    return FilePatch(path, new_path, tuple(_chunks(path, body)), is_loose=True)


def _chunks(path: str, body: Sequence[str]) -> Iterator[Hunk]:
    anchors: list[str] = []
    lines: list[str] = []
    while body and not body[-1]:
        body = body[:-1]
    for line in (*body, "@@"):
        if line.startswith(("@@", "*** End of File")):
            if lines:
                at_end = not line.startswith("@@")
                yield Hunk(tuple(lines), anchors=tuple(anchors), takes_first=True, at_end=at_end)
                anchors, lines = [], []
            anchor = line.removeprefix("@@").removesuffix("@@").strip()
            # Line numbers do not belong here; the lines themselves say where.
            if anchor and line.startswith("@@") and not anchor.startswith("-"):
                anchors.append(anchor)
        elif line[:1] in ("", " ", "+", "-"):
            lines.append(line or " ")
        else:
            raise Refusal(f"{path}: lines of a change begin with +, - or a blank, got {line!r:.80}")
