"""Finding out how one list of lines differs from another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """Lines that were replaced, removed or inserted; both ranges leave out their ends."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def split_lines(text: str) -> list[str]:
    """The lines of a text, each with its line feed."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def find_changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """What was changed, in order; between two changes there is at least one equal line."""
    changes = []
    old_done = new_done = 0
    for old_index, new_index in [*_equal_lines(old, new), (len(old), len(new))]:
        if old_index > old_done or new_index > new_done:
            changes.append(Change(old_done, old_index, new_done, new_index))
        old_done, new_done = old_index + 1, new_index + 1
    return changes


def _equal_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of indices of a longest common subsequence, by Myers's greedy algorithm (1986).

    A diagonal is a difference of indices; ``furthest`` gives the old index reached on it.
    """
    furthest = {1: 0}
    trace = []
    for distance in range(len(old) + len(new) + 1):
        trace.append(furthest.copy())
        for diagonal in range(-distance, distance + 1, 2):
            origin = _came_from(furthest, diagonal, distance)
            x = furthest[origin] + (origin < diagonal)
            while x < len(old) and x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
            furthest[diagonal] = x
            if x >= len(old) and x - diagonal >= len(new):
                return list(_walked_back(trace, len(old), len(new)))[::-1]
    return []


def _came_from(furthest: dict[int, int], diagonal: int, distance: int) -> int:
    """The diagonal from which another one was reached by removing or inserting a line."""
    is_insertion = diagonal == -distance or (
        diagonal != distance and furthest[diagonal - 1] < furthest[diagonal + 1]
    )
    return diagonal + 1 if is_insertion else diagonal - 1


def _walked_back(trace: list[dict[int, int]], x: int, y: int) -> Iterator[tuple[int, int]]:
    for distance in range(len(trace) - 1, -1, -1):
        before = _came_from(trace[distance], x - y, distance)
        start = trace[distance][before]
        while x > start and y > start - before:
            x, y = x - 1, y - 1
            yield x, y
        x, y = start, start - before
