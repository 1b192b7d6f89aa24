"""The search for a repair: candidates in falling order of score, tried in a sandbox."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from coding_gym.mutation.source import apply_edits
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import GO_ON, TEST_CPU_S, Localisation, test_files
from coding_gym.synthesis.suite import Attempt, Outcome, ReplyError, TestSandbox

# The counts end the search first, so that it does not depend on the machine.
_MAX_CANDIDATES = 500
_MAX_SEARCH_S = 45.0  # of the processor
_EXTRA = 20  # candidates still tried after the first one that passes
# Small at first, so that little is in vain where one of the first passes.
_FIRST_BATCH, _MAX_BATCH = 30, 240
_MAX_PARTIAL = 3
# A candidate may be slower than the program; one that takes so much longer loops for ever.
_CPU_FACTOR, _MIN_CPU_S = 1.5, 0.5
_SUITE_CPU_S = 30.0


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of trying a candidate.

    Attributes:
        candidate: What was tried.
        num_fixed: How many of the failing tests passed.
        is_plausible: Whether all of them did, and no other test broke.
    """

    candidate: Candidate
    num_fixed: int
    is_plausible: bool


class Search:
    """Tries the candidates of one program.

    Args:
        tests: A sandbox with the program, in which nothing else is done.
        found: Where the bug may be.
        test_arguments: Pytest's arguments for the visible tests.

    Attributes:
        trials: What was tried, in order.
    """

    def __init__(self, tests: TestSandbox, found: Localisation, test_arguments: str) -> None:
        self.trials: list[Trial] = []
        self._tests, self._found = tests, found
        self._failing = found.baseline.failing
        self._arguments = (*shlex.split(test_arguments), GO_ON)
        self._end_s = tests.spent_s + _MAX_SEARCH_S

    def run(self) -> Candidate | None:
        """Returns the candidate to apply: the simplest that makes all visible tests pass.

        Without one it is a candidate that makes at least half of the failing tests pass and breaks
        none; None where there is none either.

        Raises:
            SandboxError: The sandbox died.
        """
        try:
            return self._search()
        except ReplyError:  # which the program may have brought about
            return None

    def _search(self) -> Candidate | None:
        remaining = islice(self._found.candidates(), _MAX_CANDIDATES)
        num_left, size = _MAX_CANDIDATES, _FIRST_BATCH
        while num_left > 0 and self._tests.spent_s < self._end_s:
            batch = list(islice(remaining, min(size, num_left)))
            if not batch:
                break
            self._try(batch)
            size = min(2 * size, _MAX_BATCH)
            plausible = [n for n, trial in enumerate(self.trials) if trial.is_plausible]
            num_left -= len(batch)
            if plausible:
                num_left = plausible[0] + 1 + _EXTRA - len(self.trials)
        chosen = simplest([trial.candidate for trial in self.trials if trial.is_plausible])
        return chosen[0] if chosen else self._partial()

    def _try(self, batch: Sequence[Candidate]) -> None:
        fixed = [len(self._failing)] * len(batch)
        if not self._found.baseline.in_order:  # else they say nothing without the others
            cpu_s = _MIN_CPU_S + _CPU_FACTOR * self._found.cpu_s
            first = [
                self._attempt(c, test_files(self._failing), self._failing, cpu_s) for c in batch
            ]
            fixed = [self._num_fixed(outcome) for outcome in self._run(first)]
        hopeful = [c for c, num in zip(batch, fixed, strict=True) if num == len(self._failing)]
        whole = iter(self._run([self._whole(candidate) for candidate in hopeful]))
        for candidate, num_fixed in zip(batch, fixed, strict=True):
            if num_fixed < len(self._failing):
                self.trials.append(Trial(candidate, num_fixed, is_plausible=False))
            else:
                self.trials.append(self._judged(candidate, next(whole)))

    def _partial(self) -> Candidate | None:
        """Returns a candidate that makes at least half of the failing tests pass, breaking none."""
        half = [t for t in self.trials if t.num_fixed and 2 * t.num_fixed >= len(self._failing)]
        half.sort(key=lambda trial: -trial.num_fixed)
        chosen = [trial.candidate for trial in half[:_MAX_PARTIAL]]
        outcomes = self._run([self._whole(candidate) for candidate in chosen])
        for candidate, outcome in zip(chosen, outcomes, strict=True):
            if self._num_fixed(outcome) and not self._breaks(outcome):
                return candidate
        return None

    def _judged(self, candidate: Candidate, outcome: Outcome) -> Trial:
        num_fixed = self._num_fixed(outcome)
        is_plausible = num_fixed == len(self._failing) and not self._breaks(outcome)
        return Trial(candidate, num_fixed, is_plausible)

    def _num_fixed(self, outcome: Outcome) -> int:
        return sum(outcome.outcomes.get(test) == "passed" for test in self._failing)

    def _breaks(self, outcome: Outcome) -> bool:
        return any(outcome.outcomes.get(test) != "passed" for test in self._found.passing)

    def _whole(self, candidate: Candidate) -> Attempt:
        return self._attempt(candidate, self._arguments, None, _SUITE_CPU_S)

    def _attempt(
        self,
        candidate: Candidate,
        paths: tuple[str, ...],
        tests: tuple[str, ...] | None,
        cpu_s: float,
    ) -> Attempt:
        source = self._found.sources[candidate.path]
        changed = apply_edits(source.text, candidate.edits).encode()
        return Attempt({candidate.path: changed}, paths, tests, cpu_s, TEST_CPU_S)

    def _run(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        return self._tests.attempt(attempts, self._found.start) if attempts else ()


def simplest(found: Sequence[Candidate]) -> list[Candidate]:
    """Returns candidates, the one to prefer first.

    Templates that rarely pass tests by accident come before those that often do, higher scores
    before lower ones, less text before more.
    """
    return sorted(found, key=lambda c: (c.risk, -c.score, c.size, c.path, c.edits))
