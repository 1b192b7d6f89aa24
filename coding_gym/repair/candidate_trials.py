"""Tries candidates: applies each candidate and runs the visible tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from coding_gym.grading.supervision import ForkedRun
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import TEST_CPU_S, Baseline
from coding_gym.synthesis.suite import SuiteRun, SuiteSandbox, test_files

# A candidate can be slower than the program; above this limit it probably never ends.
_CPU_FACTOR, _MIN_CPU_S = 1.5, 0.5
_SUITE_CPU_S = 30.0


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of the visible tests with one candidate.

    Attributes:
        fraction_fixed: Fraction of the failing tests that passed, from 0 to 1.
        breaks_others: Whether another test no longer passed, if all were run.
    """

    fraction_fixed: float = 0.0
    breaks_others: bool = False

    @property
    def is_plausible(self) -> bool:
        """Whether all failing tests passed, and no other test broke."""
        return self.fraction_fixed == 1 and not self.breaks_others


class CandidateTrials:
    """Tries candidates of one program.

    Args:
        tests: A sandbox with the program, used only for this purpose.
        baseline: The results of its visible tests before any change.
        texts: Its files by path.
    """

    def __init__(self, tests: SuiteSandbox, baseline: Baseline, texts: Mapping[str, str]) -> None:
        self._tests, self._baseline, self._texts = tests, baseline, texts

    def run(self, batch: Sequence[Candidate]) -> list[Trial]:
        """Runs the failing tests with each candidate, and all tests if all of these pass.

        A candidate whose runs damage their report fixes no test.

        Raises:
            SandboxError: The sandbox died.
        """
        failing = self._baseline.failing
        if self._baseline.in_order:  # these tests have other results if they run alone
            return self.run_all(batch)
        cpu_s = _MIN_CPU_S + _CPU_FACTOR * self._baseline.cpu_s
        run = ForkedRun(paths=test_files(failing), tests=failing, cpu_s=cpu_s, limit_s=TEST_CPU_S)
        trials = [self._judged(result, ()) for result in self._runs(run, batch)]
        plausible = [c for c, trial in zip(batch, trials, strict=True) if trial.is_plausible]
        full_runs = iter(self.run_all(plausible))
        return [next(full_runs) if trial.is_plausible else trial for trial in trials]

    def run_all(self, batch: Sequence[Candidate]) -> list[Trial]:
        """Runs all tests with each candidate; raises as `run`."""
        arguments, passing = self._baseline.arguments, self._baseline.passing
        run = ForkedRun(paths=arguments, cpu_s=_SUITE_CPU_S, limit_s=TEST_CPU_S)
        return [self._judged(result, passing) for result in self._runs(run, batch)]

    def _judged(self, run: SuiteRun | None, others: Sequence[str]) -> Trial:
        passed = set() if run is None else set(run.passed)
        failing = self._baseline.failing
        fixed = passed.intersection(failing)
        return Trial(len(fixed) / len(failing), not passed.issuperset(others))

    def _files(self, candidate: Candidate) -> dict[str, bytes]:
        return {path: text.encode() for path, text in candidate.changed(self._texts).items()}

    def _runs(self, run: ForkedRun, batch: Sequence[Candidate]) -> Sequence[SuiteRun | None]:
        attempts = [replace(run, files=self._files(candidate)) for candidate in batch]
        return self._tests.attempt_each(attempts, self._baseline.modules) if attempts else ()
