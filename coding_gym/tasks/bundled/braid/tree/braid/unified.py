"""Hunks into unified diffs."""

from __future__ import annotations

from braid.comparing import split_lines
from braid.hunks import Hunk, find_hunks

UNFINISHED = "\\ No newline at end of file\n"
"""Stands behind a line that has no line feed."""


def diff(
    old: str, new: str, *, old_name: str = "old", new_name: str = "new", context: int = 3
) -> str:
    """A unified diff between two texts; empty if they are equal.

    Args:
        old: the text before.
        new: the text after.
        old_name: what the diff calls the text before.
        new_name: what the diff calls the text after.
        context: how many equal lines to show around changes.
    """
    if context < 0:
        raise ValueError(f"context must not be negative, got {context}")
    hunks = find_hunks(split_lines(old), split_lines(new), context)
    if not hunks:
        return ""
    return f"--- {old_name}\n+++ {new_name}\n" + "".join(_shown(hunk) for hunk in hunks)


def _shown(hunk: Hunk) -> str:
    old, new = _range(hunk.old_start, len(hunk.old)), _range(hunk.new_start, len(hunk.new))
    return f"@@ -{old} +{new} @@\n" + "".join(_marked(mark, line) for mark, line in hunk.lines)


def _range(start: int, length: int) -> str:
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"


def _marked(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n{UNFINISHED}"
