"""Runs of hidden tests with the gold patch or at base; the checks record their outcomes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256

from coding_gym.grade import TestStatus
from coding_gym.grading.challenge import Challenge, Unit
from coding_gym.grading.negation import RECORDER, Check, Table, TestFile
from coding_gym.grading.report import CheckReport, TestRun
from coding_gym.grading.tree import TestTree
from coding_gym.patch import Patch
from coding_gym.source_text import Edit
from coding_gym.syntax import Function
from coding_gym.task import Task

_MAX_TRIES = 5  # runs, each of which can drop checks, tables or an option
# A negated assertion can make a test wait forever. The time limit of a run is `_MAX_SLOWDOWN` times
# the duration of the first run, plus `_SLACK_S`.
_MAX_SLOWDOWN = 10.0
_SLACK_S = 10.0


@dataclass(slots=True, eq=False)
class TestFunction:
    """The source of a test function, and the ids of its tests.

    Attributes:
        file: The test file that defines the function.
        node: The syntax tree of the function.
        ids: The node ids without parameters, ``FILE::CLASS::NAME``, one for each class that
            inherits the function.
        table: The parameter table, if each row is one test; its rows are negated separately.
        rows: The row number of each test of the table, by test id.
    """

    file: TestFile
    node: Function
    ids: list[str] = field(default_factory=list)
    table: Table | None = None
    rows: Mapping[str, int] = field(default_factory=dict)


class CheckedRuns:
    """The checks of a task's hidden tests, and runs that record them.

    The number of a check is its index in ``checks``, which does not change after
    `drop_failing_checks`.

    Args:
        task: The task.
        tree: The base tree, which runs the tests.
        gold: The graded part of the gold patch.
        first: A run of the unedited tests with the gold patch.
        duration_s: The duration of this run, in seconds.

    Attributes:
        task: The task.
        first: The first run; only its report has the original ids of all tests.
        functions: The test functions of the expected tests.
        checks: The checks of these functions, each with its function.
        ids_by_test: The test functions of each expected test, as ``FILE::CLASS::NAME``.
        is_recorded: Whether the runner records checks; if not, a failed check ends its test.
        is_plain: Whether pytest runs with ``--assert=plain``.
    """

    def __init__(
        self, task: Task, tree: TestTree, gold: Patch, first: TestRun, duration_s: float
    ) -> None:
        self.task, self.first = task, first
        self._tree, self._gold = tree, gold
        self._timeout_s = _MAX_SLOWDOWN * duration_s + _SLACK_S
        self.is_recorded = self.is_plain = tree.runner.records
        self.ids_by_test = tree.runner.function_ids(task, first.files)
        self.functions = _read_functions(first.files, self.ids_by_test.values())
        self.checks: list[tuple[TestFunction, Check]] = []
        for function in self.functions:
            checks = function.file.checks(function.node)
            if self.is_recorded:
                self._find_table(function, checks)
            else:  # a failed check ends the test, so only the last check is negated
                checks = checks[-1:]
            self.checks += [(function, check) for check in checks]
        self._rename_rows()
        paths = sorted({function.file.path for function in self.functions})
        self._digests = {path: sha256(first.files[path]).hexdigest() for path in paths}

    def challenge(
        self, reached: Mapping[str, tuple[int, ...]], units: Iterable[Unit] = ()
    ) -> Challenge:
        """Returns a challenge of these checks.

        Args:
            reached: The numbers of the checks that each test reaches.
            units: The units.
        """
        checks = self.checks if self.is_recorded else []
        recorders = [check.recorded(number) for number, (_, check) in enumerate(checks)]
        return Challenge(
            units=tuple(units),
            reached=reached,
            names=self._names,
            edits=(*self._id_edits, *recorders),
            num_checks=len(checks),
            digests=self._digests,
        )

    def name(self, test: str, run: TestRun) -> str:
        """Returns the id of a test in the report of a run; only the first run has original ids."""
        return test if run is self.first else self._names.get(test, test)

    def run(
        self,
        challenge: Challenge | None = None,
        negated: Collection[int] = (),
        *,
        only: Collection[str] = (),
        is_base: bool = False,
        extra_edits: Iterable[Edit] = (),
    ) -> TestRun:
        """Runs the tests with some units negated.

        Args:
            challenge: The challenge that has the negated units; not needed without such units.
            negated: The numbers of the negated units.
            only: The tests to run; all by default.
            is_base: Whether the program is the base; by default, the gold patch is applied.
            extra_edits: Further edits of the test files.
        """
        challenge = challenge or self.challenge({})
        rewrite = partial(challenge.rewritten, negated=negated, extra_edits=extra_edits)
        return self._tree.run(
            Patch() if is_base else self._gold,
            rewrite if self.is_recorded or negated else None,
            only=only,
            num_checks=len(self.checks),
            is_plain=self.is_plain,
            timeout_s=self._timeout_s,
        )

    def reports(self, run: TestRun) -> dict[str, Mapping[int, CheckReport]]:
        """Returns the reports of the checks that each expected test executed, by test."""
        return {
            test: run.checks(self.name(test, run))
            for test in self.task.expected_tests
            if self.first.status(test) is not TestStatus.MISSING
        }

    def reports_of_base(self) -> dict[str, Mapping[int, CheckReport]]:
        """Returns the reports of the checks at base, with the values that the checks compare."""
        if not self.is_recorded:
            return {}
        all_edits: list[Edit] = []
        for function, checks in self.checks_by_function().items():
            file = function.file
            edits: list[Edit] = []
            for number, check in checks.items():
                if check.actual is not None:
                    start = file.source.span(check.actual)[0]
                    edits.append(Edit(file.path, start, start, f"{RECORDER}[{number}].see("))
                    edits.append(file.after(check.actual, ")"))
            if file.is_valid(function.node, edits):
                all_edits += edits
        return self.reports(self.run(is_base=True, extra_edits=all_edits))

    def checks_by_function(self) -> dict[TestFunction, dict[int, Check]]:
        """Returns the checks of each function, by number."""
        checks: dict[TestFunction, dict[int, Check]] = {f: {} for f in self.functions}
        for number, (function, check) in enumerate(self.checks):
            checks[function][number] = check
        return checks

    def drop_failing_checks(self) -> list[TestRun]:
        """Drops checks that fail with the gold patch; returns two runs of the other checks."""
        if not self.is_recorded:
            return [self.run(), self.run()]
        run = self.run()
        for _ in range(_MAX_TRIES):
            if not self._drop_cause(run):
                break
            run = self.run()
        return [run, self.run()]

    def _drop_cause(self, run: TestRun) -> bool:
        """Drops failed checks, or else one possible cause of failures absent from the first run.

        The cause can be the new ids of rows, the option ``--assert=plain`` or the checks of the
        test; they are dropped in this order. A test that also fails in a second run is not flaky.

        Returns:
            Whether a check, a table or the option was dropped.
        """
        failed_checks: set[int] = set()
        for reports in self.reports(run).values():
            failed_checks |= {number for number, report in reports.items() if report.num_failed}
        if failed_checks:
            self.checks = [pair for n, pair in enumerate(self.checks) if n not in failed_checks]
            return True
        tests = self._broken_tests(run)
        if tests:
            tests &= self._broken_tests(self.run())
        function_ids = {id_ for test in tests for id_ in self.ids_by_test.get(test, ())}
        if not function_ids:
            return False
        if self._drop_tables(function_ids):
            return True
        if self.is_plain:
            self.is_plain = False
            return True
        num_checks = len(self.checks)
        self.checks = [pair for pair in self.checks if function_ids.isdisjoint(pair[0].ids)]
        self.is_plain = len(self.checks) < num_checks  # the option was perhaps not the cause
        return self.is_plain

    def _broken_tests(self, run: TestRun) -> set[str]:
        """Returns the expected tests that passed in the first run and do not pass in ``run``."""
        return {
            test
            for test in self.task.expected_tests
            if self.first.status(test) is TestStatus.PASSED
            and run.status(self.name(test, run)) is not TestStatus.PASSED
        }

    def _find_table(self, function: TestFunction, checks: Sequence[Check]) -> None:
        """Sets the table of a function, if each row of the table is one reported test."""
        table = function.file.table(function.node, checks)
        if table is None:
            return
        rows: dict[str, int] = {}
        for function_id in function.ids:
            tests = [test for test in self.first.statuses if test.startswith(f"{function_id}[")]
            if len(tests) != len(table.cells):
                return
            rows |= {test: row for row, test in enumerate(tests)}
        function.table, function.rows = table, rows

    def _drop_tables(self, function_ids: set[str]) -> bool:
        """Drops the tables of functions; returns whether any of these functions had a table."""
        with_table = [f for f in self.functions if f.table and not function_ids.isdisjoint(f.ids)]
        for function in with_table:
            function.table, function.rows = None, {}
        self._rename_rows()
        return bool(with_table)

    def _rename_rows(self) -> None:
        """Replaces the ids of table rows by neutral ids, where the ids reveal the values."""
        self._id_edits: list[Edit] = []
        self._names: dict[str, str] = {}
        for function in self.functions:
            if function.table and function.table.ids:
                self._id_edits += function.table.ids
                for test, row in function.rows.items():
                    self._names[test] = f"{test.partition('[')[0]}[row{row}]"


def _read_functions(
    files: Mapping[str, bytes], ids_by_test: Iterable[Sequence[str]]
) -> list[TestFunction]:
    """Returns the test functions whose source can be parsed, without duplicates."""
    test_files: dict[str, TestFile | None] = {}
    functions: dict[tuple[str, int], TestFunction] = {}
    for function_id in dict.fromkeys(id_ for ids in ids_by_test for id_ in ids):
        path, _, name = function_id.partition("::")
        if path not in test_files:
            is_source = path in files and path.endswith(".py")
            test_files[path] = TestFile.read(path, files[path]) if is_source else None
        file = test_files[path]
        node = file.node(name) if file else None
        if file and node:
            function = functions.setdefault((path, node.lineno), TestFunction(file, node))
            function.ids.append(function_id)
    return list(functions.values())
