"""Candidates tried: each put in place for a run of the visible tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from coding_gym.grading.supervision import ForkedRun
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import TEST_CPU_S, Baseline
from coding_gym.synthesis.suite import SuiteRun, TestSandbox, test_files

# A candidate may be slower than the program; one that takes so much longer loops for ever.
_CPU_FACTOR, _MIN_CPU_S = 1.5, 0.5
_SUITE_CPU_S = 30.0


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial.

    Attributes:
        candidate: The candidate.
        fixed: Ids of the failing tests that passed.
        breaks_others: Whether another test no longer passed, where all were run.
        is_plausible: Whether all failing tests passed, and no other test broke.
    """

    candidate: Candidate
    fixed: frozenset[str] = frozenset()
    breaks_others: bool = False
    is_plausible: bool = False

    @property
    def num_fixed(self) -> int:
        """How many of the failing tests passed."""
        return len(self.fixed)


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
            ReplyError: Code of the program prevented a reply.
            SandboxError: The sandbox died.
        """
        failing = self._baseline.failing
        if self._baseline.in_order:  # alone they say nothing
            return self.run_all(batch)
        cpu_s = _MIN_CPU_S + _CPU_FACTOR * self._baseline.cpu_s
        run = ForkedRun(paths=test_files(failing), tests=failing, cpu_s=cpu_s, limit_s=TEST_CPU_S)
        runs = self._runs(run, batch)
        trials = [self._judged(c, o, ()) for c, o in zip(batch, runs, strict=True)]
        whole = iter(self.run_all([trial.candidate for trial in trials if trial.is_plausible]))
        return [next(whole) if trial.is_plausible else trial for trial in trials]

    def run_all(self, batch: Sequence[Candidate]) -> list[Trial]:
        """Runs all tests with each candidate; raises as `run`."""
        arguments, passing = self._baseline.arguments, self._baseline.passing
        run = ForkedRun(paths=arguments, cpu_s=_SUITE_CPU_S, limit_s=TEST_CPU_S)
        runs = self._runs(run, batch)
        return [self._judged(c, o, passing) for c, o in zip(batch, runs, strict=True)]

    def _judged(self, candidate: Candidate, run: SuiteRun | None, others: Sequence[str]) -> Trial:
        outcomes = {} if run is None else run.outcomes
        failing = self._baseline.failing
        fixed = frozenset(test for test in failing if outcomes.get(test) == "passed")
        breaks = any(outcomes.get(test) != "passed" for test in others)
        return Trial(
            candidate=candidate,
            fixed=fixed,
            breaks_others=breaks,
            is_plausible=len(fixed) == len(failing) and not breaks,
        )

    def _files(self, candidate: Candidate) -> dict[str, bytes]:
        return {path: text.encode() for path, text in candidate.changed(self._texts).items()}

    def _runs(self, run: ForkedRun, batch: Sequence[Candidate]) -> Sequence[SuiteRun | None]:
        attempts = [replace(run, files=self._files(candidate)) for candidate in batch]
        return self._tests.attempt(attempts, self._baseline.modules) if attempts else ()
