"""Unified diffs into hunks."""

from __future__ import annotations

import re

from braid.comparing import split_lines
from braid.errors import PatchError
from braid.hunks import ADDED, KEPT, REMOVED, Hunk

_RANGES = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*\n?")


def read_patch(patch: str) -> list[Hunk]:
    """The hunks of a patch for one file; what stands before its header is passed over.

    Raises:
        PatchError: if it cannot be read.
    """
    lines = split_lines(patch)
    position = next((n for n, line in enumerate(lines) if line.startswith("--- ")), len(lines))
    if position == len(lines):
        if patch.strip():
            raise PatchError("there is no line that starts with '--- '")
        return []
    if not "".join(lines[position + 1 : position + 2]).startswith("+++ "):
        raise PatchError(f"line {position + 2}: expected a line that starts with '+++ '")
    reader = _Reader(lines, position + 2)
    hunks = []
    while not reader.is_at_end:
        hunks.append(reader.hunk())
    return hunks


class _Reader:
    def __init__(self, lines: list[str], position: int) -> None:
        self._lines = lines
        self._position = position

    @property
    def is_at_end(self) -> bool:
        return self._position == len(self._lines)

    def hunk(self) -> Hunk:
        match = _RANGES.fullmatch(self._lines[self._position])
        if match is None:
            raise self._error("expected a hunk")
        self._position += 1
        old, old_length, new, new_length = (1 if n is None else int(n) for n in match.groups())
        lines = self._marked_lines(old_length, new_length)
        return Hunk(old - bool(old_length), new - bool(new_length), tuple(lines))

    def _marked_lines(self, old_length: int, new_length: int) -> list[tuple[str, str]]:
        """The lines of a hunk, which has so many lines of the old and of the new text."""
        found: list[tuple[str, str]] = []
        while old_length > 0 or new_length > 0:
            line = "" if self.is_at_end else self._lines[self._position]
            mark, content = (KEPT, line) if line == "\n" else (line[:1], line[1:])
            if mark not in (KEPT, REMOVED, ADDED) or not line:
                raise self._error("the hunk is not complete")
            old_length -= mark != ADDED
            new_length -= mark != REMOVED
            self._position += 1
            found.append((mark, content.removesuffix("\n") if self._is_unfinished() else content))
        if old_length or new_length:
            raise self._error("the hunk is longer than it says")
        return found

    def _is_unfinished(self) -> bool:
        """Passes over the note that the line before it has no line feed, if it comes next."""
        found = not self.is_at_end and self._lines[self._position].startswith("\\")
        self._position += found
        return found

    def _error(self, message: str) -> PatchError:
        return PatchError(f"line {self._position + 1}: {message}")
