"""Applying patches."""

from __future__ import annotations

from collections.abc import Sequence

from braid.comparing import split_lines
from braid.errors import HunkError
from braid.hunks import Hunk
from braid.reading import read_patch


def apply(patch: str, text: str) -> str:
    """The text with a patch applied.

    Raises:
        PatchError: if the patch cannot be read.
        HunkError: if a hunk fits nowhere.
    """
    lines = split_lines(text)
    patched: list[str] = []
    done = drift = 0
    for number, hunk in enumerate(read_patch(patch), start=1):
        start = _find(hunk, lines, done, hunk.old_start + drift)
        if start is None:
            raise HunkError(f"hunk {number} does not fit", number)
        drift = start - hunk.old_start
        patched += lines[done:start]
        patched += hunk.new
        done = start + len(hunk.old)
    return "".join(patched + lines[done:])


def _find(hunk: Hunk, lines: Sequence[str], first: int, expected: int) -> int | None:
    """The index nearest to ``expected``, from ``first`` on, at which the hunk fits; else None."""
    wanted = hunk.old
    candidates = range(first, len(lines) - len(wanted) + 1)
    for start in sorted(candidates, key=lambda start: abs(start - expected)):
        if lines[start : start + len(wanted)] == wanted:
            return start
    return None
