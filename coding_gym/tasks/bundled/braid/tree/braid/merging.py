"""Merging what two sides have made of one text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from braid.comparing import Change, find_changes, split_lines
from braid.regions import Region, find_regions


@dataclass(frozen=True, slots=True)
class MergeResult:
    """A merged text, and how many conflicts there are in it."""

    text: str
    conflicts: int


def merge(
    base: str, ours: str, theirs: str, *, our_name: str = "ours", their_name: str = "theirs"
) -> MergeResult:
    """Brings together what two sides have made of the same base.

    Args:
        base: the text that both started from.
        ours: what one side has made of it.
        theirs: what the other side has made of it.
        our_name: what the marks of conflicts call one side.
        their_name: what the marks of conflicts call the other side.
    """
    base_lines, our_lines, their_lines = split_lines(base), split_lines(ours), split_lines(theirs)
    merged: list[str] = []
    done = conflicts = 0
    our_changes = find_changes(base_lines, our_lines)
    for region in find_regions(our_changes, find_changes(base_lines, their_lines)):
        merged += base_lines[done : region.start]
        done = region.end
        our_part = _part(our_lines, region.ours, region)
        their_part = _part(their_lines, region.theirs, region)
        if not region.theirs or our_part == their_part:
            merged += our_part
        elif not region.ours:
            merged += their_part
        else:
            conflicts += 1
            merged += _conflict(our_part, their_part, our_name, their_name)
    return MergeResult("".join(merged + base_lines[done:]), conflicts)


def _part(lines: Sequence[str], changes: Sequence[Change], region: Region) -> Sequence[str]:
    """What one side has made of a region; nothing, if it has not changed anything there."""
    if not changes:
        return []
    before = changes[0].old_start - region.start
    behind = region.end - changes[-1].old_end
    return lines[changes[0].new_start - before : changes[-1].new_end + behind]


def _conflict(
    ours: Sequence[str], theirs: Sequence[str], our_name: str, their_name: str
) -> list[str]:
    return [
        f"<<<<<<< {our_name}\n",
        *_finished(ours),
        "=======\n",
        *_finished(theirs),
        f">>>>>>> {their_name}\n",
    ]


def _finished(lines: Sequence[str]) -> list[str]:
    """The lines, of which the last one gets a line feed if it has none, for a mark follows."""
    return [line if line.endswith("\n") else line + "\n" for line in lines]
