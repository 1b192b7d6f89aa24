"""In which order bugs are tried: seeded, every operator in turn, no program twice."""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random

from coding_gym import syntax
from coding_gym.tasks.synthesis.mutants import Mutant, Site

_TRIES_PER_COMBINATION = 20


def in_turn(sites: Iterable[Site], rng: Random) -> Iterator[Mutant]:
    """Yields a mutant for each site: one of each operator, then another of each, and so on.

    Without turns most tasks would be of the operators that find most places.
    """
    by_operator: dict[str, list[Site]] = {}
    for site in sites:
        by_operator.setdefault(site.operator, []).append(site)
    for found in by_operator.values():
        rng.shuffle(found)
    names = sorted(by_operator)
    while names:
        rng.shuffle(names)
        for name in names:
            yield Mutant((by_operator[name].pop(),))
        names = sorted(name for name in names if by_operator[name])


def combined(known: Sequence[Mutant], rng: Random) -> Iterator[Mutant]:
    """Yields combinations of two, or sometimes three, in different functions, for ever.

    Args:
        known: Mutants of one site each, that tests find.
        rng: Decides.
    """
    sites = [mutant.sites[0] for mutant in known]
    for _ in range(_TRIES_PER_COMBINATION * len(sites)):
        number = 3 if len(sites) > 3 and rng.random() < 0.25 else 2
        if len(sites) < number:
            return
        chosen = rng.sample(sites, number)
        if len({(site.path, site.function) for site in chosen}) == number:
            yield Mutant(tuple(sorted(chosen, key=lambda s: (s.path, s.edit.start))))


class Programs:
    """The programs that were seen, as syntax trees, to tell those that say the same.

    Args:
        sources: Content of the project's files, by path.
    """

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources
        self._seen: set[str] = set()
        self._plain: dict[str, str] = {}

    def is_new(self, mutant: Mutant) -> bool:
        """Returns whether a mutant parses, differs from the project, and was not seen yet."""
        parts = []
        for path, data in sorted(mutant.files(self._sources).items()):
            digest = _tree_digest(data)
            if path not in self._plain:
                self._plain[path] = _tree_digest(self._sources[path])
            if not digest or digest == self._plain[path]:
                return False
            parts.append(f"{path} {digest}")
        key = "\n".join(parts)
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new


def _tree_digest(data: bytes) -> str:
    """A digest of a program's syntax tree; "" where it has none."""
    try:
        return hashlib.sha256(ast.dump(syntax.parse(data)).encode()).hexdigest()
    except (SyntaxError, ValueError):
        return ""
