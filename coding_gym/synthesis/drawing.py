"""In which order bugs are tried: seeded, every operator in turn, no program twice."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from random import Random

from coding_gym.mutation.sites import Site, unit_around
from coding_gym.mutation.source import Edit
from coding_gym.synthesis.mutants import Mutant, Mutation

_TRIES_PER_COMBINATION = 20


def in_turn(mutations: Iterable[Mutation], rng: Random) -> Iterator[Mutant]:
    """Yields a mutant for each mutation: one of each kind, then another of each, and so on.

    Without turns most tasks would be of the kinds that find most places.
    """
    by_kind: dict[str, list[Mutation]] = {}
    for mutation in mutations:
        by_kind.setdefault(mutation.change.bug, []).append(mutation)
    for found in by_kind.values():
        rng.shuffle(found)
    names = sorted(by_kind)
    while names:
        rng.shuffle(names)
        for name in names:
            yield Mutant((by_kind[name].pop(),))
        names = sorted(name for name in names if by_kind[name])


def combined(known: Sequence[Mutant], rng: Random) -> Iterator[Mutant]:
    """Yields combinations of two, or sometimes three, in different functions, for ever.

    Args:
        known: Mutants of one mutation each, that tests find.
        rng: Decides.
    """
    mutations = [mutant.mutations[0] for mutant in known]
    for _ in range(_TRIES_PER_COMBINATION * len(mutations)):
        number = 3 if len(mutations) > 3 and rng.random() < 0.25 else 2
        if len(mutations) < number:
            return
        chosen = rng.sample(mutations, number)
        is_apart = len({(m.path, m.function) for m in chosen}) == number
        if is_apart and not _overlap([edit for m in chosen for edit in m.change.edits]):
            yield Mutant(tuple(sorted(chosen, key=lambda m: (m.path, m.change.edits))))


class Programs:
    """The programs that were seen, as syntax trees, to tell those that say the same."""

    def __init__(self) -> None:
        self._seen: set[tuple[tuple[str, int, str], ...]] = set()

    def is_new(self, mutant: Mutant) -> bool:
        """Returns whether a mutant parses, differs from the project, and was not seen yet."""
        units = []
        for mutation in mutant.mutations:
            unit = _unit(mutation.site, mutation.change.edits)
            if unit is None or unit == _unit(mutation.site):
                return False
            units.append((mutation.path, *unit))
        is_new = tuple(units) not in self._seen
        self._seen.add(tuple(units))
        return is_new


def _overlap(edits: Sequence[Edit]) -> bool:
    return any(first.overlaps(second) for first, second in combinations(edits, 2))


def _unit(site: Site, edits: Sequence[Edit] = ()) -> tuple[int, str] | None:
    """The offset of the unit around a statement, and what it says; None where it is no Python."""
    found = unit_around(site, edits)
    return None if found is None else (found[0], ast.dump(found[2]))
