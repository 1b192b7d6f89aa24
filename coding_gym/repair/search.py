"""The search for a repair: candidates tried in falling order of score, then pairs of them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import combinations, islice

from coding_gym.repair.candidate_trials import CandidateTrials, Trial
from coding_gym.repair.candidates import PAIR, Candidate
from coding_gym.repair.localisation import Localisation
from coding_gym.synthesis.suite import ReplyError, TestSandbox

# The counts end most searches first, so that they do not depend on the machine.
_MAX_CANDIDATES = 1000
_MAX_SEARCH_S = 45.0  # of the processor
_EXTRA = 20  # candidates still tried after the first one that passes
# Small at first, so that little is in vain where one of the first passes.
_FIRST_BATCH, _MAX_BATCH = 30, 240
_MAX_PAIRED, _MAX_PAIRS = 40, 250
_MAX_PARTIAL = 3


class Search:
    """Tries the candidates of one program.

    Args:
        tests: A sandbox with the program, in which nothing else is done.
        found: Where the bug may be.

    Attributes:
        trials: What was tried, in order.
    """

    def __init__(self, tests: TestSandbox, found: Localisation) -> None:
        self.trials: list[Trial] = []
        self._tests, self._found = tests, found
        self._num_failing = len(found.baseline.failing)
        texts = {path: source.text for path, source in found.sources.items()}
        self._tried = CandidateTrials(tests, found.baseline, texts)
        self._end_s = tests.spent_s + _MAX_SEARCH_S

    def run(self) -> Candidate | None:
        """Returns the candidate to apply: the simplest that makes all visible tests pass.

        Pairs are tried where no single candidate does. Without either it is a single one that makes
        at least half of the failing tests pass and breaks none; None where there is none.

        Raises:
            SandboxError: The sandbox died.
        """
        with suppress(ReplyError):  # the program itself can cause this
            return self._single() or self._pair() or self._partial()
        return None

    def _single(self) -> Candidate | None:
        return self._first_plausible(self._found.candidates(), _MAX_CANDIDATES)

    def _pair(self) -> Candidate | None:
        hopeful = [trial for trial in self.trials if trial.has_effect and not trial.breaks_others]
        hopeful.sort(key=lambda trial: -trial.num_fixed)
        return self._first_plausible(pairs(hopeful[:_MAX_PAIRED]), _MAX_PAIRS)

    def _first_plausible(
        self, candidates: Iterable[Candidate], max_candidates: int
    ) -> Candidate | None:
        """Tries candidates until one makes all visible tests pass, and a few more; see `run`."""
        remaining, start = islice(candidates, max_candidates), len(self.trials)
        num_left, size = max_candidates, _FIRST_BATCH
        while num_left > 0 and self._tests.spent_s < self._end_s:
            batch = list(islice(remaining, min(size, num_left)))
            if not batch:
                break
            try:
                self.trials += self._tried.run(batch)
            except ReplyError:  # the program itself can cause this
                break
            size = min(2 * size, _MAX_BATCH)
            plausible = [n for n, t in enumerate(self.trials[start:], 1) if t.is_plausible]
            num_left -= len(batch)
            if plausible:
                num_left = plausible[0] + _EXTRA - (len(self.trials) - start)
        chosen = simplest([trial.candidate for trial in self.trials if trial.is_plausible])
        return chosen[0] if chosen else None

    def _partial(self) -> Candidate | None:
        """Returns one edit that makes at least half of the failing tests pass, and breaks none."""
        half = [
            trial
            for trial in self.trials
            if trial.num_fixed and 2 * trial.num_fixed >= self._num_failing
            if not trial.breaks_others and not trial.candidate.is_pair
        ]
        half.sort(key=lambda trial: -trial.num_fixed)
        for trial in self._tried.run_all([t.candidate for t in half[:_MAX_PARTIAL]]):
            if trial.num_fixed and not trial.breaks_others:
                return trial.candidate
        return None


def pairs(trials: Sequence[Trial]) -> Iterator[Candidate]:
    """Yields a candidate for every two tried ones whose edits do not overlap.

    Pairs that together made the most failing tests pass come first, then higher products of scores.
    """
    found = [
        (len(one.fixed | other.fixed), one.candidate, other.candidate)
        for one, other in combinations(trials, 2)
        if not any(a.overlaps(b) for a in one.candidate.edits for b in other.candidate.edits)
    ]
    for _, one, other in sorted(found, key=lambda p: (-p[0], -p[1].score * p[2].score)):
        yield Candidate(
            path=one.path,
            line=one.line,
            template=f"{one.template}{PAIR}{other.template}",
            score=one.score * other.score,
            edits=(*one.edits, *other.edits),
            suspicion=max(one.suspicion, other.suspicion),
            risk=max(one.risk, other.risk),
        )


def simplest(found: Sequence[Candidate]) -> list[Candidate]:
    """Returns candidates, the one to prefer first.

    Templates that rarely pass tests by accident come before those that often do, higher scores
    before lower ones, less text before more.
    """
    return sorted(found, key=lambda c: (c.risk, -c.score, c.size, c.path, c.edits))
