"""Candidates tried: each put in place for a run of the visible tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coding_gym.mutation.source import apply_edits
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import TEST_CPU_S, Baseline, test_files
from coding_gym.synthesis.suite import Attempt, Outcome, TestSandbox

# A candidate may be slower than the program; one that takes so much longer loops for ever.
_CPU_FACTOR, _MIN_CPU_S = 1.5, 0.5
_SUITE_CPU_S = 30.0


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of trying a candidate.

    Attributes:
        candidate: What was tried.
        num_fixed: How many of the failing tests passed.
        breaks_others: Whether another test no longer passed, where all were run.
        is_plausible: Whether all failing tests passed, and no other test broke.
    """

    candidate: Candidate
    num_fixed: int
    breaks_others: bool
    is_plausible: bool


class CandidateTrials:
    """Tries candidates of one program.

    Args:
        tests: A sandbox with the program, in which nothing else is done.
        baseline: How its visible tests go.
        texts: Its files by path.
    """

    def __init__(self, tests: TestSandbox, baseline: Baseline, texts: Mapping[str, str]) -> None:
        self._tests, self._baseline, self._texts = tests, baseline, texts

    def run(self, batch: Sequence[Candidate]) -> list[Trial]:
        """Runs the failing tests with each candidate, and all tests where all of those pass.

        Raises:
            ReplyError: The program brought about that there is no reply.
            SandboxError: The sandbox died.
        """
        failing = self._baseline.failing
        if self._baseline.in_order:  # alone they say nothing
            return self.run_all(batch)
        cpu_s = _MIN_CPU_S + _CPU_FACTOR * self._baseline.cpu_s
        first = [
            Attempt(self._files(c), test_files(failing), failing, cpu_s, TEST_CPU_S) for c in batch
        ]
        fixed = [self._num_fixed(outcome) for outcome in self._outcomes(first)]
        hopeful = [c for c, num in zip(batch, fixed, strict=True) if num == len(failing)]
        whole = iter(self.run_all(hopeful))
        return [
            next(whole) if num == len(failing) else Trial(candidate, num, False, False)
            for candidate, num in zip(batch, fixed, strict=True)
        ]

    def run_all(self, batch: Sequence[Candidate]) -> list[Trial]:
        """Runs all tests with each candidate; raises as `run`."""
        arguments = self._baseline.arguments
        attempts = [
            Attempt(self._files(c), arguments, None, _SUITE_CPU_S, TEST_CPU_S) for c in batch
        ]
        outcomes = self._outcomes(attempts)
        return [self._judged(c, outcome) for c, outcome in zip(batch, outcomes, strict=True)]

    def _judged(self, candidate: Candidate, outcome: Outcome) -> Trial:
        num_fixed = self._num_fixed(outcome)
        breaks = any(outcome.outcomes.get(t) != "passed" for t in self._baseline.passing)
        return Trial(
            candidate=candidate,
            num_fixed=num_fixed,
            breaks_others=breaks,
            is_plausible=num_fixed == len(self._baseline.failing) and not breaks,
        )

    def _num_fixed(self, outcome: Outcome) -> int:
        return sum(outcome.outcomes.get(test) == "passed" for test in self._baseline.failing)

    def _files(self, candidate: Candidate) -> dict[str, bytes]:
        changed = apply_edits(self._texts[candidate.path], candidate.edits)
        return {candidate.path: changed.encode()}

    def _outcomes(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        return self._tests.attempt(attempts, self._baseline.start) if attempts else ()
