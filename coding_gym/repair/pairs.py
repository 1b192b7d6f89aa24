"""Pairs of edits, for bugs that no single edit repairs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from coding_gym.repair.candidates import Candidate


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of trying a candidate.

    Attributes:
        candidate: What was tried.
        code: How it ended, one of `probe.verdicts`.
        fixed: The failing tests that passed, by number.
    """

    candidate: Candidate
    code: str
    fixed: frozenset[int] = frozenset()


def pairs(trials: Sequence[Trial]) -> Iterator[Candidate]:
    """Yields pairs of edits that each made a failing test pass or changed how it fails.

    Pairs that together made the most failing tests pass come first, then the higher product of
    scores; edits that overlap are not paired.
    """
    found = []
    for number, (first, second) in enumerate(combinations(trials, 2)):
        left, right = first.candidate, second.candidate
        if any(a.overlaps(b) for a in left.edits for b in right.edits):
            continue
        score = left.score * right.score
        found.append((-len(first.fixed | second.fixed), -score, number, left, right))
    for *_, left, right in sorted(found, key=lambda entry: entry[:3]):
        yield Candidate(
            left.path,
            left.line,
            f"{left.template}+{right.template}",
            left.score * right.score,
            (*left.edits, *right.edits),
            max(left.suspicion, right.suspicion),
            max(left.risk, right.risk),
        )


def simplest(trials: Sequence[Trial]) -> list[Candidate]:
    """Returns the candidates of trials, the one to prefer first.

    Fewer edits before more, templates that rarely pass tests by accident before those that often
    do, higher scores before lower ones, less text before more.
    """
    chosen = [trial.candidate for trial in trials]
    return sorted(
        chosen, key=lambda c: (c.template.count("+"), c.risk, -c.score, c.size, c.path, c.edits)
    )
