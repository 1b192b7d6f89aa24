"""Hunks: changes with some of the lines around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from braid.comparing import Change, find_changes

KEPT, REMOVED, ADDED = " ", "-", "+"


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines with marks, and the indices at which they start in the old and in the new text."""

    old_start: int
    new_start: int
    lines: tuple[tuple[str, str], ...]

    @property
    def old(self) -> list[str]:
        """The lines that are looked for."""
        return [line for mark, line in self.lines if mark != ADDED]

    @property
    def new(self) -> list[str]:
        """The lines that stand there afterwards."""
        return [line for mark, line in self.lines if mark != REMOVED]


def find_hunks(old: Sequence[str], new: Sequence[str], context: int) -> list[Hunk]:
    """The hunks between two texts, with ``context`` equal lines on either side of each change."""
    return [
        _hunk(group, old, new, context) for group in _grouped(find_changes(old, new), 2 * context)
    ]


def _grouped(changes: Sequence[Change], most: int) -> Iterator[list[Change]]:
    """Puts changes together that have at most so many equal lines between them."""
    group: list[Change] = []
    for change in changes:
        if group and change.old_start - group[-1].old_end > most:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(group: list[Change], old: Sequence[str], new: Sequence[str], context: int) -> Hunk:
    before = min(context, group[0].old_start)
    start = done = group[0].old_start - before
    lines: list[tuple[str, str]] = []
    for change in group:
        lines += ((KEPT, line) for line in old[done : change.old_start])
        lines += ((REMOVED, line) for line in old[change.old_start : change.old_end])
        lines += ((ADDED, line) for line in new[change.new_start : change.new_end])
        done = change.old_end
    lines += ((KEPT, line) for line in old[done : done + context])
    return Hunk(start, group[0].new_start - before, tuple(lines))
