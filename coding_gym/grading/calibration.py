"""Calibration: makes the plan of a task from test runs with the gold patch and at base."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import cycle, islice
from random import Random
from time import perf_counter

from coding_gym.errors import GradingError
from coding_gym.grade import Level, TestStatus
from coding_gym.grading.challenge import RECORDER, Challenge, Outcome
from coding_gym.grading.negation import Check, Table, TestFile, Unit, names_in, subject_of
from coding_gym.grading.number_draws import new_words
from coding_gym.grading.plan import Plan
from coding_gym.grading.report import CheckReport, Run
from coding_gym.grading.tree import TestTree
from coding_gym.patch import FileChange, Patch
from coding_gym.source_text import Edit
from coding_gym.syntax import Function
from coding_gym.task import Task

_log = logging.getLogger(__name__)
_MAX_ROUNDS = 24  # pairs of runs
_MAX_TRIES = 5  # runs that drop checks or options with which tests fail
_MAX_CANDIDATES = 8  # units for one slot
# A negated assertion can make a test wait forever. The time limit of a run is `_MAX_SLOWDOWN` times
# the duration of the first run, plus `_SLACK_S`.
_MAX_SLOWDOWN = 10.0
_SLACK_S = 10.0
_USUAL_RUNS = 20  # test runs of a typical calibration
# The time limit of a calibration is `_MAX_DURATIONS` first runs, plus `_MIN_TOTAL_S`.
_MAX_DURATIONS = 10 * _USUAL_RUNS
_MIN_TOTAL_S = 600.0
_LONG_S = 300.0  # a calibration that is expected to take longer logs a warning
_NO_UNIT = Unit(edits=(), level=Level.STRUCTURE)


@dataclass(slots=True, eq=False)
class _TestFunction:
    """The source of a test function, and the ids of its tests.

    Attributes:
        file: The test file that defines the function.
        node: The syntax tree of the function.
        ids: The node ids without parameters, ``FILE::CLASS::NAME``; several if classes inherit it.
        table: The parameter table, if each row is one test; its rows are negated separately.
        rows: The row number of each test of the table, by test id.
    """

    file: TestFile
    node: Function
    ids: list[str] = field(default_factory=list)
    table: Table | None = None
    rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Slot:
    """A check, or a row of a table, to negate.

    Attributes:
        index: The index among the slots of the same function.
        candidates: The units that are not rejected, the best first; the first unit is in use.
            Without candidates, the checks stay original.
    """

    index: int
    candidates: list[Unit]

    @property
    def unit(self) -> Unit:
        """The unit in use; without candidates, `_NO_UNIT`, which has no edits and no tests."""
        return self.candidates[0] if self.candidates else _NO_UNIT


def calibrate(task: Task, tree: TestTree, gold: Patch, rng: Random) -> Plan:
    """Returns the plan of a task.

    The plan is not calibrated if the first run with the gold patch is incomplete, or if no test
    passes in every run.

    Args:
        task: The task.
        tree: The base tree, which runs the tests.
        gold: The graded part of the gold patch.
        rng: Source of random choices.

    Raises:
        GradingError: The tests do not start with the gold patch, their run is killed, or all runs
            together take too long.
    """
    start = perf_counter()
    first = tree.run(gold)
    duration_s = perf_counter() - start
    _check_first_run(first)
    if not first.is_whole:
        return Plan()
    if _USUAL_RUNS * duration_s > _LONG_S:
        text = "the plan of %s takes about %d test runs of %.0f s; later grades reuse this plan"
        _log.warning(text, task.task_id, _USUAL_RUNS, duration_s)
    calibration = _Calibration(task, tree, gold, first, duration_s, rng)
    runs = [first, *calibration.drop_failing_checks()]
    passes = {
        test: [run.status(calibration.name(test, run)) is TestStatus.PASSED for run in runs]
        for test in task.expected_tests
    }
    stable = [test for test, results in passes.items() if all(results)]
    flaky = [t for t, results in passes.items() if any(results) and t not in stable]
    unstable = [test for test in flaky if test in task.fail_to_pass]
    if not stable:
        return Plan()
    calibration.find_slots(stable, unstable, runs[-1])
    is_alone = False
    if calibration.slots:
        calibration.choose_units(stable)
        is_alone = calibration.verify_alone(stable)
    return Plan(
        is_calibrated=True,
        challenge=calibration.final_challenge(),
        excluded=tuple(test for test in flaky if test not in unstable),
        unstable=tuple(unstable),
        xfailing=tuple(
            test
            for test in task.expected_tests
            if all(run.status(calibration.name(test, run)) is TestStatus.XFAILED for run in runs)
        ),
        is_plain=calibration.is_plain,
        is_alone=is_alone,
    )


def _check_first_run(run: Run) -> None:
    """Raises a `GradingError` if the tests did not run: an empty plan would challenge no patch."""
    if run.start_error:
        raise GradingError(f"the tests do not start with the gold patch: {run.start_error}")
    if run.timed_out or run.out_of_memory or run.is_lost:
        end = "timed out" if run.timed_out else "was killed"
        raise GradingError(f"the run of the tests with the gold patch {end}")


class _Calibration:
    """The steps of a calibration, in the order in which `calibrate` takes them.

    The number of a check is its index in ``checks``, which does not change after
    `drop_failing_checks`. The number of a slot, and of its unit in the runs of a calibration, is
    its index in ``slots``, which does not change after `find_slots`; only candidates are removed.

    Attributes:
        functions: The test functions of the expected tests.
        checks: The checks of these functions, each with its function.
        reached: The numbers of the checks that each test reaches; set by `find_slots`.
        slots: The checks and rows to negate; set by `find_slots`.
        is_plain: Whether the tests run with ``--assert=plain``.
    """

    def __init__(
        self, task: Task, tree: TestTree, gold: Patch, first: Run, duration_s: float, rng: Random
    ) -> None:
        self._task, self._tree, self._gold = task, tree, gold
        self._timeout_s = _MAX_SLOWDOWN * duration_s + _SLACK_S
        self._total_s = _MAX_DURATIONS * duration_s + _MIN_TOTAL_S
        self._start = perf_counter()
        self._first, self._rng, self._records = first, rng, tree.runner.records
        self._ids_by_test = tree.runner.function_ids(task, first.files)
        self.functions = _read_functions(first.files, self._ids_by_test.values())
        self.checks: list[tuple[_TestFunction, Check]] = []
        self.reached: Mapping[str, tuple[int, ...]] = {}
        self.slots: list[_Slot] = []
        self.is_plain = tree.runner.records
        for function in self.functions:
            checks = function.file.checks(function.node)
            if tree.runner.records:
                self._find_table(function, checks)
            else:  # a failed check ends the test, so only the last check is negated
                checks = checks[-1:]
            self.checks += [(function, check) for check in checks]
        self._rename_rows()
        paths = sorted({function.file.path for function in self.functions})
        self._digests = {path: sha256(first.files[path]).hexdigest() for path in paths}
        self._hidden = {
            (change.path, line)
            for change in Patch(task.test_patch).files
            for line in _new_lines(change, first.files.get(change.path, b""))
            if line not in task.problem_statement
        }

    def name(self, test: str, run: Run) -> str:
        """Returns the id of a test in the report of a run; only the first run has original ids."""
        return test if run is self._first else self._names.get(test, test)

    @property
    def challenge(self) -> Challenge:
        """The challenge with the units in use, one for each slot."""
        return Challenge(
            checks=tuple(check.where for _, check in self.checks),
            units=tuple(slot.unit for slot in self.slots),
            reached=self.reached,
            names=self._names,
            shape=tuple(self._shape),
            digests=self._digests,
            is_recorded=self._records,
        )

    def final_challenge(self) -> Challenge:
        """Returns the challenge of the plan, without slots that have no unit.

        If several units expect the same number of one function, a reader of one version sees this
        number more often than each near miss, and infers that it is right. Such units are no bits.
        """
        units = [slot.unit for slot in self.slots if slot.candidates]
        expected = [self._expected(unit) for unit in units]
        uses = Counter(pair for pairs in expected for pair in pairs)
        return replace(
            self.challenge,
            units=tuple(
                replace(unit, is_bit=unit.is_bit and all(uses[pair] == 1 for pair in pairs))
                for unit, pairs in zip(units, expected, strict=True)
            ),
        )

    def _expected(self, unit: Unit) -> set[tuple[str, str]]:
        """Returns each word that a unit of a fail-to-pass test replaces, with its `subject_of`."""
        if set(self._task.fail_to_pass).isdisjoint(unit.tests):
            return set()
        function, check = self.checks[unit.checks[0]]
        text, subject = function.file.source.text, subject_of(check.actual)
        return {
            (word, subject)
            for edit in unit.edits
            for word in new_words(text[edit.start : edit.end], edit.replacement)
        }

    def drop_failing_checks(self) -> list[Run]:
        """Drops checks that fail or are not executed with the gold patch; returns two new runs."""
        if not self._records:
            return [self._tree.run(self._gold), self._tree.run(self._gold)]
        run = self._run(())
        for _ in range(_MAX_TRIES):
            if not self._drop_cause(run):
                break
            run = self._run(())
        executed = {number for reports in self._reports(run).values() for number in reports}
        self.checks = [pair for n, pair in enumerate(self.checks) if n in executed]
        return [run, self._run(())]

    def _drop_cause(self, run: Run) -> bool:
        """Drops failed checks, or else one cause of failures of tests that passed as written.

        The cause can be the new ids of rows, the option ``--assert=plain`` or the checks of the
        test; they are dropped in this order. A second run distinguishes such a test from a flaky
        test.

        Returns:
            Whether a check, a table or the option was dropped.
        """
        failed_checks = {
            number
            for reports in self._reports(run).values()
            for number, report in reports.items()
            if report.num_failed
        }
        if failed_checks:
            self.checks = [pair for n, pair in enumerate(self.checks) if n not in failed_checks]
            return True
        tests = self._broken_tests(run)
        if tests:
            tests &= self._broken_tests(self._run(()))
        functions = {name for test in tests for name in self._ids_by_test.get(test, ())}
        if not functions or self._drop_tables(functions):
            return bool(functions)
        if not self.is_plain:
            num_checks = len(self.checks)
            self.checks = [pair for pair in self.checks if functions.isdisjoint(pair[0].ids)]
            self.is_plain = len(self.checks) < num_checks  # the option may not have been the cause
            return self.is_plain
        self.is_plain = False
        return True

    def _broken_tests(self, run: Run) -> set[str]:
        """Returns the expected tests that passed in the first run and do not pass in ``run``."""
        return {
            test
            for test in self._task.expected_tests
            if self._first.status(test) is TestStatus.PASSED
            and run.status(self.name(test, run)) is not TestStatus.PASSED
        }

    def find_slots(self, stable: Sequence[str], unstable: Sequence[str], run: Run) -> None:
        """Sets `reached`, and `slots` with their candidates.

        Args:
            stable: The tests that pass in every run.
            unstable: The flaky fail-to-pass tests. Units that only these tests reach are dropped.
            run: A run of the original checks.
        """
        tests = [*stable, *unstable]
        if self._records:
            reports = self._reports(run)
            self.reached = {test: tuple(sorted(reports.get(test, ()))) for test in tests}
        else:
            self.reached = self._reached_by_source(tests)
        tests_by_check: dict[int, list[str]] = {}
        for test, numbers in self.reached.items():
            for number in numbers:
                tests_by_check.setdefault(number, []).append(test)
        base = self._reports_of_base()
        for function, checks in self._checks_by_function().items():
            slots = self._slots_of(function, checks, tests_by_check, base)
            self.slots += [slot for slot in slots if not {*unstable}.issuperset(slot.unit.tests)]

    def choose_units(self, stable: Sequence[str]) -> None:
        """Rejects units until runs with the gold patch end as expected.

        The first draws separate the slots of a function: for any two slots, one draw negates only
        one of the two. One random draw follows. Returns after every draw has succeeded once
        without a failure between them.
        """
        self._verify(stable, range(len(self.slots)))  # rejects most unusable units
        num_bits = max(slot.index for slot in self.slots).bit_length()
        slots = list(enumerate(self.slots))
        draws = [
            tuple([n for n, slot in slots if slot.index >> bit & 1 == value] for value in (1, 0))
            for bit in range(num_bits)
        ]
        num_verified = 0
        for draw in islice(cycle([*draws, None]), _MAX_ROUNDS):
            versions = draw or self.challenge.draw(stable, self._rng)
            results = [self._verify(stable, negated) for negated in versions]
            num_verified = num_verified + 1 if all(results) else 0
            if num_verified == len(draws) + 1:
                return
        for slot in self.slots:  # no usable set of units was found
            slot.candidates.clear()

    def verify_alone(self, stable: Sequence[str]) -> bool:
        """Returns whether fail-to-pass tests can run alone; calls `_clear_bits`.

        They can if the fail-to-pass tests and the other tests end as expected in separate runs with
        the gold patch, and no fail-to-pass test ends as expected at base.
        """
        early = [test for test in self._task.fail_to_pass if test in stable]
        late = [test for test in stable if test not in early]
        first, second = self.challenge.draw([*early, *late], self._rng)
        groups = (early, first), (early, second), (late, first)
        is_alone = self._records and bool(early) and all(self._end_as_expected(*g) for g in groups)
        only = early if is_alone else ()
        passed_at_base = set(early)
        for negated in (first, second) if early else ():
            run = self._run(negated, only=only, is_base=True)
            passed_at_base &= self._clear_bits(early, run, negated)
        return is_alone and not passed_at_base

    def _find_table(self, function: _TestFunction, checks: Sequence[Check]) -> None:
        """Sets the table of a function, if every row of it is one reported test."""
        table = function.file.table(function.node, checks)
        if table is None:
            return
        reported = self._first.statuses
        tests = [[t for t in reported if t.startswith(f"{name}[")] for name in function.ids]
        if any(len(rows) != len(table.cells) for rows in tests):
            return
        function.table = table
        function.rows = {test: row for rows in tests for row, test in enumerate(rows)}

    def _drop_tables(self, functions: set[str]) -> bool:
        """Drops the tables of functions; returns whether any of these functions had a table."""
        with_table = [f for f in self.functions if f.table and not functions.isdisjoint(f.ids)]
        for function in with_table:
            function.table, function.rows = None, {}
        self._rename_rows()
        return bool(with_table)

    def _rename_rows(self) -> None:
        """Replaces the ids of table rows by neutral ids, where the ids reveal the values."""
        renamed = [(f, f.table.ids) for f in self.functions if f.table and f.table.ids]
        self._shape = [edit for _, edits in renamed for edit in edits]
        self._names = {
            test: f"{test.partition('[')[0]}[row{row}]"
            for function, _ in renamed
            for test, row in function.rows.items()
        }

    def _run(
        self,
        negated: Collection[int],
        *,
        only: Collection[str] = (),
        is_base: bool = False,
        extra_edits: Iterable[Edit] = (),
    ) -> Run:
        """Runs the tests with some units negated.

        Raises:
            GradingError: The calibration takes too long.
        """
        if perf_counter() - self._start > self._total_s:
            raise GradingError(
                f"task {self._task.task_id} cannot be graded: its plan is not complete after "
                f"{self._total_s:.0f} s; remedy: list fewer tests in PASS_TO_PASS"
            )
        rewrite = partial(self.challenge.rewritten, negated=negated, extra_edits=extra_edits)
        return self._tree.run(
            Patch() if is_base else self._gold,
            rewrite,
            only=only,
            num_checks=len(self.checks),
            is_plain=self.is_plain,
            timeout_s=self._timeout_s,
        )

    def _reports(self, run: Run) -> dict[str, Mapping[int, CheckReport]]:
        """Returns the reports of the checks that each expected test executed, by test."""
        return {
            test: run.checks(self.name(test, run))
            for test in self._task.expected_tests
            if self._first.status(test) is not TestStatus.MISSING
        }

    def _reached_by_source(self, tests: Collection[str]) -> dict[str, tuple[int, ...]]:
        """Returns the checks in the source of each test, for runners that record no assertions."""
        numbers = {
            id_: checks.keys()
            for function, checks in self._checks_by_function().items()
            for id_ in function.ids
        }
        return {
            test: tuple(sorted({number for id_ in ids for number in numbers[id_]}))
            for test in tests
            if (ids := self._ids_by_test.get(test)) and all(id_ in numbers for id_ in ids)
        }

    def _reports_of_base(self) -> dict[str, Mapping[int, CheckReport]]:
        """Returns the reports of the checks at base, with the values that these compare."""
        if not self._records:
            return {}
        all_edits: list[Edit] = []
        for function, checks in self._checks_by_function().items():
            file = function.file
            edits: list[Edit] = []
            for number, check in checks.items():
                if check.actual is not None:
                    start = file.source.span(check.actual)[0]
                    edits.append(Edit(file.path, start, start, f"{RECORDER}[{number}].see("))
                    edits.append(file.after(check.actual, ")"))
            if file.is_valid(function.node, edits):
                all_edits += edits
        return self._reports(self._run((), is_base=True, extra_edits=all_edits))

    def _checks_by_function(self) -> dict[_TestFunction, dict[int, Check]]:
        """Returns the checks of each function, by number."""
        checks: dict[_TestFunction, dict[int, Check]] = {f: {} for f in self.functions}
        for number, (function, check) in enumerate(self.checks):
            checks[function][number] = check
        return checks

    def _slots_of(
        self,
        function: _TestFunction,
        checks: Mapping[int, Check],
        tests_by_check: Mapping[int, list[str]],
        base: Mapping[str, Mapping[int, CheckReport]],
    ) -> list[_Slot]:
        """Returns the slots of a function: its table's rows, and the checks that use no row."""
        file, node = function.file, function.node

        def outputs(numbers: Sequence[int], tests: Sequence[str]) -> list[str]:
            reports = [base.get(t, {}).get(n, CheckReport()) for t in tests for n in numbers]
            return [text for report in reports for text in report.values]

        slots: list[_Slot] = []
        table = function.table
        of_table = tuple(n for n, c in checks.items() if table and table.name in names_in(c))
        for row, cell in enumerate(table.cells if table else ()):
            all_tests = (test for number in of_table for test in tests_by_check.get(number, ()))
            tests = [*dict.fromkeys(t for t in all_tests if function.rows.get(t) == row)]
            if tests:
                is_exact = all(checks[number].is_exact for number in of_table)
                values = outputs(of_table, tests)
                units = file.other_cells(node, cell, values, self._rng, is_exact=is_exact)
                if candidates := self._candidates(function, of_table, tests, units):
                    slots.append(_Slot(len(slots), candidates))
        negated_by_rows = of_table if slots else ()
        for number, check in checks.items():
            tests = tests_by_check.get(number, [])
            if tests and number not in negated_by_rows:
                units = file.negations(node, check, outputs([number], tests), self._rng)
                if candidates := self._candidates(function, (number,), tests, units):
                    slots.append(_Slot(len(slots), candidates))
        return slots

    def _candidates(
        self,
        function: _TestFunction,
        checks: tuple[int, ...],
        tests: Sequence[str],
        units: Iterator[Unit],
    ) -> list[Unit]:
        """Returns the first valid units, each with its checks and the tests that execute them.

        A correct program may skip checks on branches, so a forger can claim to skip them. A unit
        whose checks are all on branches is therefore no bit, and its level is ``STRUCTURE``.
        """
        valid = (unit for unit in units if function.file.is_valid(function.node, unit.edits))
        is_optional = all(self.checks[number][1].where.is_optional for number in checks)
        return [
            replace(
                unit,
                checks=checks,
                tests=tuple(tests),
                level=Level.STRUCTURE if is_optional else unit.level,
                is_bit=unit.is_bit and not is_optional and self._is_hidden(function.file, unit),
            )
            for unit in islice(valid, _MAX_CANDIDATES)
        ]

    def _is_hidden(self, file: TestFile, unit: Unit) -> bool:
        """Whether neither the policy's tree nor the issue has a line that a unit edits."""
        lines = (file.source.line_at(edit.start).strip() for edit in unit.edits)
        return all((file.path, line) in self._hidden for line in lines)

    def _verify(self, tests: Collection[str], negated: Collection[int]) -> bool:
        """Returns whether a run ends as expected; if not, rejects the units that are the cause."""
        ordered = [number for number in negated if self.slots[number].candidates]
        active = frozenset(ordered)
        challenge = self.challenge
        run = self._run(active)
        if not run.is_whole:
            if active:
                candidates = self.slots[self._breaking_unit(run, ordered)].candidates
                # After a timeout, the slot's other candidates would probably time out, too.
                del candidates[: None if run.timed_out else 1]
            return False
        rejected: set[int] = set()
        is_expected = True
        for test in tests:
            outcome = challenge.outcome(test, run, active)
            is_expected = is_expected and outcome.status is TestStatus.PASSED
            numbers = [n for n in challenge.unit_numbers([test]) if n in active]
            units = {n: challenge.units[n] for n in numbers}
            reports = run.checks(self.name(test, run))
            rejected |= self._culprits(outcome, units, reports)
            if outcome.failed and not units:  # the cause can be a unit of another test
                path = test.partition("::")[0]
                in_file = {n for n in active if challenge.units[n].edits[0].path == path}
                rejected |= in_file or active
        for number in rejected:
            del self.slots[number].candidates[0]
        return is_expected and not rejected

    def _breaking_unit(self, run: Run, active: Sequence[int]) -> int:
        """Returns an active unit with which a run does not complete or changes the test files."""
        if run.timed_out:  # the report has the start of the test that ran then, and no end
            started = [t for t in self.reached if self.name(t, run) in run.statuses]
            unended = [t for t in started if run.status(self.name(t, run)) is TestStatus.MISSING]
            units = self.challenge.unit_numbers(unended)
            active = [number for number in units if number in active] or active
        while len(active) > 1:
            half = active[: len(active) // 2]
            active = active[len(half) :] if self._run(half).is_whole else half
        return active[0]

    def _culprits(
        self, outcome: Outcome, units: Mapping[int, Unit], reports: Mapping[int, CheckReport]
    ) -> set[int]:
        """Returns the numbers of the negated ``units`` to reject for the outcome of a test.

        A negated check must fail. If a check, executed repeatedly, fails and passes, its unit stays
        with ``is_every`` false. If the test failed otherwise, its last executed unit is rejected.
        """
        culprits: set[int] = set()
        for number, unit in units.items():
            if outcome.wrongly_passed.intersection(unit.checks):
                if all(reports.get(check, CheckReport()).num_failed for check in unit.checks):
                    self.slots[number].candidates[0] = replace(unit, is_every=False)
                else:
                    culprits.add(number)
        if outcome.failed and units:
            executed = [
                n for n, unit in units.items() if not reports or reports.keys() & set(unit.checks)
            ]
            culprits.add(max(executed or units, key=lambda number: units[number].checks))
        return culprits

    def _end_as_expected(self, tests: Sequence[str], negated: Collection[int]) -> bool:
        if not tests:
            return True
        run = self._run(negated, only=tests)
        challenge = self.challenge
        statuses = {challenge.outcome(test, run, negated).status for test in tests}
        return run.is_whole and statuses == {TestStatus.PASSED}

    def _clear_bits(self, tests: Sequence[str], run: Run, negated: Collection[int]) -> set[str]:
        """Clears ``is_bit`` of units whose checks pass at base; returns the tests that passed."""
        challenge = self.challenge
        passed_tests = set()
        for test in tests:
            outcome = challenge.outcome(test, run, negated)
            reports = run.checks(self.name(test, run))
            passed = {n for n, report in reports.items() if report.num_passed} or (
                outcome.passed | outcome.wrongly_passed
            )
            for slot in (self.slots[number] for number in challenge.unit_numbers([test])):
                if not passed.isdisjoint(slot.unit.checks):
                    slot.candidates[0] = replace(slot.unit, is_bit=False)
            if outcome.status is TestStatus.PASSED:
                passed_tests.add(test)
        return passed_tests


def _new_lines(change: FileChange, content: bytes) -> set[str]:
    """Returns the stripped lines that a change adds, unless the file had them before.

    Args:
        change: The change of a file.
        content: The file after the change.
    """
    added, removed = (
        Counter(line[1:].strip() for line in change.text.split("\n") if line.startswith(sign))
        for sign in "+-"
    )
    text = content.decode("utf-8", "surrogateescape")
    before = Counter(line.strip() for line in text.split("\n")) - added + removed
    return added.keys() - before.keys()


def _read_functions(
    files: Mapping[str, bytes], ids_by_test: Iterable[Sequence[str]]
) -> list[_TestFunction]:
    """Returns the test functions whose source can be parsed, without duplicates."""
    test_files: dict[str, TestFile | None] = {}
    functions: dict[tuple[str, int], _TestFunction] = {}
    for function_id in dict.fromkeys(name for ids in ids_by_test for name in ids):
        path, _, name = function_id.partition("::")
        if path not in test_files:
            test_files[path] = _test_file(path, files)
        file = test_files[path]
        node = file.node(name) if file else None
        if file and node:
            function = functions.setdefault((path, node.lineno), _TestFunction(file, node))
            function.ids.append(function_id)
    return list(functions.values())


def _test_file(path: str, files: Mapping[str, bytes]) -> TestFile | None:
    try:
        return TestFile.read(path, files[path]) if path.endswith(".py") and path in files else None
    except (SyntaxError, ValueError, RecursionError):
        return None  # the syntax of another Python version, or no source text
