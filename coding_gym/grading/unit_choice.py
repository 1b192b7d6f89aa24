"""Chooses the unit of each check or row, by runs with the gold patch and at base."""

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice
from random import Random

from coding_gym.grade import Level, TestStatus
from coding_gym.grading.challenge import Challenge, Unit
from coding_gym.grading.checked_runs import CheckedRuns
from coding_gym.grading.negation import subject_of
from coding_gym.grading.number_choice import new_words
from coding_gym.grading.report import TestRun

_log = logging.getLogger(__name__)
_MAX_ROUNDS = 24  # pairs of runs
_NO_UNIT = Unit(edits=(), level=Level.STRUCTURE)


class UnitChoice:
    """The choice of a unit for each check or row.

    The number of a unit is its index in ``candidates``.

    Args:
        runs: The checks of the tests.
        reached: The numbers of the checks that each test always reaches.
        candidates: The units of each check or row, the best first. The first unit is in use; a
            rejected unit is removed. Without units, the check stays original.
        stable: The tests that pass in every run of the original checks.
        rng: Source of random choices.
    """

    def __init__(
        self,
        runs: CheckedRuns,
        reached: Mapping[str, tuple[int, ...]],
        candidates: Sequence[list[Unit]],
        stable: Sequence[str],
        rng: Random,
    ) -> None:
        self._runs, self._reached, self._candidates = runs, reached, candidates
        self._stable, self._rng = stable, rng
        self._functions = [runs.checks[units[0].checks[0]][0] for units in candidates]
        self._rejected: list[set[int]] = [set()]  # numbers of rejected candidates, by round

    @property
    def _challenge(self) -> Challenge:
        """The challenge with the units in use."""
        units = [units[0] if units else _NO_UNIT for units in self._candidates]
        return self._runs.challenge(self._reached, units)

    def choose(self) -> None:
        """Rejects units until runs with the gold patch have the expected outcomes.

        A round runs two versions, each of which negates some units. A binary digit of the units'
        numbers assigns units to versions; each round uses a different digit. The units of a
        function have consecutive numbers, so any two of these are in different versions in some
        round. In a last round a draw assigns units. The rounds repeat until all succeed in a row.
        If they do not, functions with units that were rejected in these rounds lose all units.
        """
        numbers = range(len(self._candidates))
        rounds = [*range(self._num_digits()), None]  # of all units, also if some are rejected
        self._verify(numbers)  # rejects most unusable units in one run
        num_verified = 0
        for digit in islice(cycle(rounds), _MAX_ROUNDS):
            if digit is None:
                versions = self._challenge.draw(self._stable, self._rng)
            else:
                first = frozenset(n for n in numbers if n >> digit & 1)
                versions = first, frozenset(numbers) - first
            self._rejected.append(set())
            results = [self._verify(negated) for negated in versions]
            num_verified = num_verified + 1 if all(results) else 0
            if num_verified == len(rounds):
                return
        unreliable = {self._functions[n] for n in set().union(*self._rejected[-len(rounds) :])}
        message = "%s: %d test functions are not challenged; results with the gold patch vary"
        _log.warning(message, self._runs.task.task_id, len(unreliable))
        for function, units in zip(self._functions, self._candidates, strict=True):
            if function in unreliable:
                units.clear()

    def _num_digits(self) -> int:
        """Returns how many of the lowest binary digits tell the units of a function apart."""
        return (max(Counter(self._functions).values(), default=1) - 1).bit_length()

    def verify_alone(self) -> bool:
        """Returns whether fail-to-pass tests can run alone; calls `_clear_bits`.

        They can run alone if they and the other tests pass in separate runs with the gold
        patch, and no fail-to-pass test passes in both versions at base.
        """
        early = [test for test in self._runs.task.fail_to_pass if test in self._stable]
        late = [test for test in self._stable if test not in early]
        first, second = self._challenge.draw([*early, *late], self._rng)
        if not early:
            return False
        is_alone = (
            self._runs.is_recorded
            and self._end_as_expected(early, first)
            and self._end_as_expected(early, second)
            and self._end_as_expected(late, first)
        )
        only = early if is_alone else ()
        passed_at_base = set(early)
        for negated in (first, second):
            run = self._runs.run(self._challenge, negated, only=only, is_base=True)
            passed_at_base &= self._clear_bits(early, run, negated)
        return is_alone and not passed_at_base

    def final_challenge(self) -> Challenge:
        """Returns the challenge of the plan.

        If several units expect the same number of one function, a reader of one version sees this
        number more often than each near miss, and infers that it is right. Such units are not bits.
        """
        units = [candidates[0] for candidates in self._candidates if candidates]
        expectations = [self._expectations(unit) for unit in units]
        num_units = Counter(pair for pairs in expectations for pair in pairs)
        for number, pairs in enumerate(expectations):
            if any(num_units[pair] > 1 for pair in pairs):
                units[number] = replace(units[number], is_bit=False)
        return self._runs.challenge(self._reached, units)

    def _expectations(self, unit: Unit) -> set[tuple[str, str]]:
        """Returns pairs of a word that the unit replaces and the `subject_of` its check.

        The set is empty if no fail-to-pass test executes the unit's checks.
        """
        if set(self._runs.task.fail_to_pass).isdisjoint(unit.tests):
            return set()
        function, check = self._runs.checks[unit.checks[0]]
        text, subject = function.file.source.text, subject_of(check.actual)
        words: set[str] = set()
        for edit in unit.edits:
            words |= {*new_words(text[edit.start : edit.end], edit.replacement)}
        return {(word, subject) for word in words}

    def _verify(self, negated: Collection[int]) -> bool:
        """Returns whether a run has the expected outcomes; if not, rejects units as the cause."""
        ordered = [number for number in negated if self._candidates[number]]
        active = frozenset(ordered)
        challenge = self._challenge
        run = self._runs.run(challenge, active)
        if not run.is_whole:
            if active:
                self._rejected[-1].add(number := self._breaking_unit(run, ordered))
                # After a timeout, other units of the check would probably time out, too.
                del self._candidates[number][: None if run.timed_out else 1]
            return False
        rejected: set[int] = set()
        outcomes = {test: challenge.outcome(test, run, active) for test in self._stable}
        for test, outcome in outcomes.items():
            numbers = [n for n in challenge.unit_numbers([test]) if n in active]
            rejected |= {
                n for n in numbers if outcome.wrongly_passed.intersection(challenge.units[n].checks)
            }
            has_failed = outcome.failed and not self._has_dropped(test, run, bool(numbers))
            if has_failed and numbers:
                negated_units = {n: challenge.units[n] for n in numbers}
                rejected.add(self._last_executed(test, run, negated_units))
            elif has_failed:
                path = test.partition("::")[0]  # the cause can be a unit of another test
                units_of_file = {n for n in active if challenge.units[n].edits[0].path == path}
                rejected |= units_of_file or active
        self._rejected[-1] |= rejected
        for number in rejected:
            del self._candidates[number][:1]
        is_expected = all(o.status is TestStatus.PASSED for o in outcomes.values())
        return is_expected and not rejected

    def _has_dropped(self, test: str, run: TestRun, is_negated: bool) -> bool:
        """Requires only checks that a test always reaches; returns whether it reached fewer.

        A negation can be the cause, so a test ``is_negated`` runs once more, as written.
        """
        name, reached = self._runs.name(test, run), self._reached[test]
        if not self._runs.is_recorded or run.status(name) is not TestStatus.PASSED:
            return False
        missing = {*reached} - run.checks(name).keys()
        if missing and is_negated:
            missing -= self._runs.run().checks(name).keys()
        self._reached = {**self._reached, test: tuple(n for n in reached if n not in missing)}
        for units in self._candidates:
            for index, unit in enumerate(units):
                if test in unit.tests and not missing.isdisjoint(unit.checks):
                    units[index] = replace(unit, tests=tuple(t for t in unit.tests if t != test))
            units[:] = [unit for unit in units if unit.tests]
        return bool(missing)

    def _breaking_unit(self, run: TestRun, active: Sequence[int]) -> int:
        """Returns the number of an active unit that makes a run incomplete or edits test files."""
        if run.timed_out:  # the report has the start of the test that ran then, and no end
            names = {test: self._runs.name(test, run) for test in self._reached}
            started_tests = [test for test, name in names.items() if name in run.statuses]
            unended_tests = [t for t in started_tests if run.status(names[t]) is TestStatus.MISSING]
            units = self._challenge.unit_numbers(unended_tests)
            active = [number for number in units if number in active] or active
        while len(active) > 1:
            middle = len(active) // 2
            is_whole = self._runs.run(self._challenge, active[:middle]).is_whole
            active = active[middle:] if is_whole else active[:middle]
        return active[0]

    def _last_executed(self, test: str, run: TestRun, units: Mapping[int, Unit]) -> int:
        """Returns the number of the last unit with an executed check; if none, of the last unit."""
        reports = run.checks(self._runs.name(test, run))
        executed_units = [n for n, unit in units.items() if reports.keys() & {*unit.checks}]
        return max(executed_units or units, key=lambda number: units[number].checks)

    def _end_as_expected(self, tests: Sequence[str], negated: Collection[int]) -> bool:
        """Returns whether tests, run alone with the gold patch, have the status ``PASSED``."""
        if not tests:
            return True
        challenge = self._challenge
        run = self._runs.run(challenge, negated, only=tests)
        statuses = {challenge.outcome(test, run, negated).status for test in tests}
        return run.is_whole and statuses == {TestStatus.PASSED}

    def _clear_bits(self, tests: Sequence[str], run: TestRun, negated: Collection[int]) -> set[str]:
        """Clears ``is_bit`` of units whose checks pass at base; returns the tests that passed."""
        challenge = self._challenge
        passed_tests = set()
        for test in tests:
            outcome = challenge.outcome(test, run, negated)
            reports = run.checks(self._runs.name(test, run))
            passed_checks = {n for n, report in reports.items() if report.num_passed}
            if not passed_checks:  # a runner without reports of checks
                passed_checks = {*outcome.passed, *outcome.wrongly_passed}
            for number in challenge.unit_numbers([test]):
                unit = challenge.units[number]
                if not passed_checks.isdisjoint(unit.checks):
                    self._candidates[number][0] = replace(unit, is_bit=False)
            if outcome.status is TestStatus.PASSED:
                passed_tests.add(test)
        return passed_tests
