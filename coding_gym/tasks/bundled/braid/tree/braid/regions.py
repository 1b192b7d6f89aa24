"""Where two sets of changes to the same text meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from braid.comparing import Change


@dataclass(slots=True)
class Region:
    """A place in the base, and the changes that either side has made to it."""

    start: int
    end: int
    ours: list[Change] = field(default_factory=list)
    theirs: list[Change] = field(default_factory=list)


def find_regions(ours: Sequence[Change], theirs: Sequence[Change]) -> list[Region]:
    """The places of all changes, in order; between two regions there is an unchanged line."""
    regions: list[Region] = []
    sided = [(change, True) for change in ours] + [(change, False) for change in theirs]
    for change, is_ours in sorted(sided, key=lambda pair: (pair[0].old_start, pair[0].old_end)):
        if not regions or change.old_start > regions[-1].end:
            regions.append(Region(change.old_start, change.old_end))
        region = regions[-1]
        region.end = max(region.end, change.old_end)
        (region.ours if is_ours else region.theirs).append(change)
    return regions
