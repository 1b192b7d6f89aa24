"""The search for a repair: tries candidates in descending order of score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import TEST_CPU_S, Baseline, Localisation
from coding_gym.synthesis.suite import Attempt, Suite, SuiteRun

# The CPU limit of a trial is 1.5 times the baseline's time plus 0.5 s; slower runs rarely end.
_CPU_FACTOR, _MIN_CPU_S = 1.5, 0.5
_SUITE_CPU_S = 30.0
# Most searches end at this limit before the time limit, so results depend little on the machine.
_MAX_CANDIDATES = 1000
_MAX_SEARCH_S = 75.0  # processor seconds
_NUM_EXTRA = 20  # candidates to try after the first plausible candidate


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of the visible tests with one candidate.

    Attributes:
        fraction_fixed: Fraction of `Baseline.failing` that passed, from 0 to 1.
        breaks_others: Whether another test no longer passed; False if only failing tests were run.
    """

    fraction_fixed: float = 0.0
    breaks_others: bool = False

    @property
    def is_plausible(self) -> bool:
        """Whether all failing tests passed and all other tests still pass."""
        return self.fraction_fixed == 1 and not self.breaks_others


def try_candidate(
    suite: Suite, baseline: Baseline, texts: Mapping[str, str], candidate: Candidate
) -> Trial:
    """Runs the failing tests with a candidate; if all of them pass, runs all tests.

    Args:
        suite: The visible tests of the program.
        baseline: The results of the tests before any change.
        texts: The text of each file of the program, by path.
        candidate: The candidate; without a readable report of the run, it counts as fixing no test.

    Raises:
        GradingError, SandboxError: The infrastructure failed.
    """
    files = {candidate.path: candidate.applied(texts[candidate.path]).encode()}
    if not baseline.needs_all_tests:
        attempt = Attempt(
            files=files,
            tests=baseline.failing,
            cpu_s=_MIN_CPU_S + _CPU_FACTOR * baseline.cpu_s,
            limit_s=TEST_CPU_S,
        )
        trial = _to_trial(suite.run(attempt), baseline.failing, ())
        if not trial.is_plausible:
            return trial
    attempt = Attempt(paths=baseline.arguments, files=files, cpu_s=_SUITE_CPU_S, limit_s=TEST_CPU_S)
    return _to_trial(suite.run(attempt), baseline.failing, baseline.passing)


def _to_trial(
    run: SuiteRun | None, failing_tests: Sequence[str], passing_tests: Sequence[str]
) -> Trial:
    """Returns the result of a run; the tests are the baseline's tests."""
    passed_tests = set() if run is None else set(run.passed)
    num_fixed = len(passed_tests.intersection(failing_tests))
    return Trial(num_fixed / len(failing_tests), not passed_tests.issuperset(passing_tests))


def find_repair(suite: Suite, localisation: Localisation) -> Candidate | None:
    """Tries candidates up to a limit; stops 20 candidates after the first plausible candidate.

    Args:
        suite: The visible tests of the program.
        localisation: The suspicious statements of the program.

    Returns:
        The plausible candidate that is first in the order of `preference`; None if none is found.

    Raises:
        GradingError, SandboxError: The infrastructure failed.
    """
    texts = {path: source.text for path, source in localisation.sources.items()}
    limit, end_s = _MAX_CANDIDATES, suite.spent_s + _MAX_SEARCH_S
    plausible_candidates: list[Candidate] = []
    for number, candidate in enumerate(localisation.candidates()):
        if number == limit or suite.spent_s > end_s:
            break
        if try_candidate(suite, localisation.baseline, texts, candidate).is_plausible:
            if not plausible_candidates:
                limit = number + 1 + _NUM_EXTRA
            plausible_candidates.append(candidate)
    return min(plausible_candidates, key=preference, default=None)


def preference(candidate: Candidate) -> tuple[object, ...]:
    """Returns the sort key of plausible candidates.

    Templates that rarely pass tests by accident come first, then higher scores, then shorter edits.
    """
    return candidate.risk, -candidate.score, candidate.size, candidate.path, candidate.edits
