"""The runs that challenge one patch: selects their tests and versions, and computes the grade."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from random import Random

from coding_gym.grade import Grade, GradeReason, Level, TestStatus
from coding_gym.grading.challenge import Outcome
from coding_gym.grading.plan import Plan
from coding_gym.grading.report import TestRun
from coding_gym.grading.tree import TestTree
from coding_gym.grading.verdict import judge
from coding_gym.patch import Patch
from coding_gym.task import Task

_MIN_SAMPLE, _SAMPLE_DIVISOR = 8, 5  # the sample is 8 or 1/5 of the tests, whichever is more


@dataclass(slots=True)
class PatchRuns:
    """The runs that challenge one patch.

    Attributes:
        task: The task, without unstable pass-to-pass tests.
        tree: The base tree, which runs the tests.
        patch: The graded change.
        plan: The plan of the task.
        rng: Source of the draws.
        outcomes: The outcomes of each test in the previous runs.
        drawn: Tests of the units that the draw assigns to a version; they run in both versions.
    """

    task: Task
    tree: TestTree
    patch: Patch
    plan: Plan
    rng: Random
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    drawn: set[str] = field(default_factory=set)

    def verdict(self, challenge: str) -> Grade:
        """Returns the grade; a task without units has one run, of the original tests.

        Early tests are the fail-to-pass tests, late tests the pass-to-pass tests; if fail-to-pass
        tests cannot run alone, all tests are early. Late tests in `drawn` run in both versions,
        other late tests in the second version only. There are up to three runs:

        1. The first version of early tests and of late tests in `drawn`.
        2. If all early tests passed: the second version of all tests. Else ``"resolved"`` stops,
           and ``"passed"`` runs the second version of early tests.
        3. If run 2 excluded late tests, and a fail-to-pass test passed both runs: the second
           version of late tests.
        """
        if not self.plan.challenge.units:
            run = self._run_tests((), self.task.expected_tests)
            # One run verifies tests that cannot be negated; other tests need a challenge.
            is_verified = run.has_ended and not self.tree.is_negatable
            return self._grade(run, self.outcomes, is_verified=is_verified)
        if self.plan.is_alone:
            early, late = self.task.fail_to_pass, self.task.pass_to_pass
        else:
            early, late = self.task.expected_tests, ()
        first, second = self.plan.challenge.draw([*early, *self._sample(late)], self.rng)
        # Tests that share units with tests of the sample also need both versions.
        units = self.plan.challenge.units
        self.drawn = {test for number in first | second for test in units[number].tests}

        run = self._run_tests(first, [*early, *(test for test in late if test in self.drawn)])
        if run.is_whole and self._have_passed(early):
            run = self._run_tests(second, [*early, *late])
        elif run.is_whole and challenge == "passed":
            run = self._run_tests(second, early)
            if run.is_whole and late and self._has_passing_test():
                run = self._run_tests(second, late)
        if not run.is_whole:
            return self._grade(run, self.outcomes, is_verified=False)
        if challenge == "resolved" and not self._have_passed(early):
            return self._grade(run, self._decided(early), is_verified=False)
        # If no fail-to-pass test passes, the results of late tests would reveal the draw.
        graded = self.outcomes if self._has_passing_test() else early
        outcomes = {test: self.outcomes[test] for test in graded}
        return self._grade(run, outcomes, is_verified=not self._unnegated)

    @property
    def _unnegated(self) -> tuple[str, ...]:
        level = self.plan.challenge.level
        return tuple(test for test in self.task.fail_to_pass if level(test) is Level.STRUCTURE)

    def _decided(self, early: Iterable[str]) -> Mapping[str, Sequence[Outcome]]:
        """Returns those outcomes of failed tests that do not depend on the draw.

        The status of a test in `drawn` is undecided, unless the test failed outside of its checks.
        """
        outcomes, has_checks = {}, self.plan.challenge.num_checks > 0
        for test in early:
            outcome = self.outcomes[test][0]
            failed_outside_checks = has_checks and outcome.first_wrong < 0
            is_decided = failed_outside_checks or test not in self.drawn
            if outcome.status is not TestStatus.PASSED and is_decided:
                outcomes[test] = [outcome]
        return outcomes

    def _run_tests(self, negated: Collection[int], tests: Sequence[str]) -> TestRun:
        """Runs tests; runs all tests once more if `_may_be_flaky` holds for every failed test."""
        run = self._run_once(negated, tests)
        if not run.is_whole:
            return run
        results = {test: self._outcome(test, run, negated) for test in tests}
        failed_tests = [test for test in tests if results[test].status is not TestStatus.PASSED]
        if failed_tests and all(self._may_be_flaky(test, results[test]) for test in failed_tests):
            rerun = self._run_once(negated, self.task.expected_tests)
            if rerun.forgery:
                return rerun
            if rerun.is_whole:
                results |= {test: self._outcome(test, rerun, negated) for test in failed_tests}
        for test, outcome in results.items():
            self.outcomes.setdefault(test, []).append(outcome)
        return run

    def _run_once(self, negated: Collection[int], tests: Sequence[str]) -> TestRun:
        challenge = self.plan.challenge
        rewrite = partial(challenge.rewritten, negated=negated)
        return self.tree.run(
            self.patch,
            rewrite,
            only=tests if self.plan.is_alone else (),
            num_checks=challenge.num_checks,
            is_plain=self.plan.is_plain,
        )

    def _outcome(self, test: str, run: TestRun, negated: Collection[int]) -> Outcome:
        outcome = self.plan.challenge.outcome(test, run, negated)
        if outcome.status is TestStatus.XFAILED and test in self.plan.xfailing:
            return Outcome(status=TestStatus.PASSED)
        return outcome

    def _may_be_flaky(self, test: str, outcome: Outcome) -> bool:
        """Returns whether a test may run once more after its failure.

        Pass-to-pass tests and unstable tests may, unless a negated check of the test passed.
        """
        can_rerun = test in self.plan.unstable or test not in self.task.fail_to_pass
        return can_rerun and not outcome.wrongly_passed

    def _has_passed(self, test: str) -> bool:
        outcomes = self.outcomes.get(test, [])
        return bool(outcomes) and all(o.status is TestStatus.PASSED for o in outcomes)

    def _have_passed(self, tests: Iterable[str]) -> bool:
        return all(map(self._has_passed, tests))

    def _has_passing_test(self) -> bool:
        """Returns whether a fail-to-pass test has passed all its runs."""
        return any(map(self._has_passed, self.task.fail_to_pass))

    def _sample(self, tests: Sequence[str]) -> list[str]:
        negatable = [test for test in tests if self.plan.challenge.units_of([test])]
        size = max(_MIN_SAMPLE, ceil(len(tests) / _SAMPLE_DIVISOR))
        return self.rng.sample(negatable, min(size, len(negatable)))

    def _grade(
        self, run: TestRun, outcomes: Mapping[str, Sequence[Outcome]], *, is_verified: bool
    ) -> Grade:
        statuses, messages = {}, {}
        for test in self.task.expected_tests:
            results = outcomes.get(test, ())
            failures = [result for result in results if result.status is not TestStatus.PASSED]
            failure = min(failures, key=lambda o: (not o.failed, o.first_wrong), default=None)
            statuses[test] = failure.status if failure else self._status(test, len(results), run)
            messages[test] = failure.message if failure else ""
        verdict = judge(self.task, statuses, messages, run)
        forged_tests = [test for test in outcomes if self._is_forged(test, outcomes[test])]
        if forged_tests:
            detail = f"an assertion passed both as written and negated, in test {forged_tests[0]}"
            verdict = replace(verdict, resolved=False, reason=GradeReason.TAMPERED, detail=detail)
        num_bits = self.plan.challenge.num_bits
        return replace(
            verdict,
            levels=self.plan.counts(self.task.fail_to_pass),
            unnegated=self._unnegated,
            bits=num_bits(self.task.fail_to_pass),
            weakest_bits=min((num_bits([test]) for test in self.task.fail_to_pass), default=0),
            is_verified=is_verified,
            plan=self.plan.digest if self.plan.is_calibrated else "",
        )

    def _status(self, test: str, num_passed: int, run: TestRun) -> TestStatus:
        """Returns the status of a test that passed all its runs, whose number is ``num_passed``."""
        if not run.is_whole:
            return TestStatus.MISSING
        num_needed = 2 if test in self.drawn else 1
        return TestStatus.PASSED if num_passed >= num_needed else TestStatus.UNDECIDED

    def _is_forged(self, test: str, outcomes: Sequence[Outcome]) -> bool:
        """Returns whether a check of a unit with `is_proof` passed both as written and negated."""
        units = self.plan.challenge.units_of([test])
        proof_checks = {number for unit in units if unit.is_proof for number in unit.checks}
        passed = {number for outcome in outcomes for number in outcome.passed}
        wrongly_passed = {number for outcome in outcomes for number in outcome.wrongly_passed}
        return bool(proof_checks & passed & wrongly_passed)
