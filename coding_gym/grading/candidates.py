"""Finds the candidates: the units that can negate a check or a row of a parameter table."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from random import Random

from coding_gym.grading.challenge import Unit
from coding_gym.grading.checked_runs import CheckedRuns, TestFunction
from coding_gym.grading.negation import Check, TestFile, names_in
from coding_gym.grading.report import CheckReport, TestRun
from coding_gym.patch import FileChange, Patch

_MAX_CANDIDATES = 10  # for one check or row


def reached_checks(
    runs: CheckedRuns, tests: Sequence[str], results: Sequence[TestRun]
) -> dict[str, tuple[int, ...]]:
    """Returns the numbers of the checks that each test always reaches.

    Args:
        runs: The checks of the tests.
        tests: The tests.
        results: Runs of the original checks, whose reports have the numbers. If the runner records
            no checks, the numbers come from the source of the tests.
    """
    if runs.is_recorded:
        reports = [runs.reports(run) for run in results]
        always = {t: set.intersection(*({*r.get(t, ())} for r in reports)) for t in tests}
        return {test: tuple(sorted(numbers)) for test, numbers in always.items()}
    numbers_by_id: dict[str, set[int]] = {}
    for function, checks in runs.checks_by_function().items():
        numbers_by_id |= {id_: {*checks} for id_ in function.ids}
    reached: dict[str, tuple[int, ...]] = {}
    for test in tests:
        ids = runs.ids_by_test.get(test, ())
        if ids and numbers_by_id.keys() >= {*ids}:
            reached[test] = tuple(sorted({n for id_ in ids for n in numbers_by_id[id_]}))
    return reached


class CandidateFinder:
    """Finds the candidates of tests.

    Args:
        runs: The checks of the tests.
        reached: The numbers of the checks that each test reaches.
        rng: Source of random choices.
    """

    def __init__(
        self, runs: CheckedRuns, reached: Mapping[str, tuple[int, ...]], rng: Random
    ) -> None:
        self._runs, self._rng = runs, rng
        self._tests_by_check: dict[int, list[str]] = {}
        for test, numbers in reached.items():
            for number in numbers:
                self._tests_by_check.setdefault(number, []).append(test)
        self._base = runs.reports_of_base()
        self._hidden: set[tuple[str, str]] = set()  # paths and lines that the policy cannot see
        for change in Patch(runs.task.test_patch).files:
            for line in _new_lines(change, runs.first.files.get(change.path, b"")):
                if line not in runs.task.problem_statement:
                    self._hidden.add((change.path, line))

    def find(self) -> list[list[Unit]]:
        """Returns the candidates of each check or row that can be negated, the best first."""
        functions = self._runs.checks_by_function().items()
        found = (units for function, checks in functions for units in self._find(function, checks))
        return [units for units in found if units]

    def _find(self, function: TestFunction, checks: Mapping[int, Check]) -> Iterator[list[Unit]]:
        """Yields the candidates of the rows of a table, and of checks that no row negates."""
        if table := function.table:
            row_checks = {n: c for n, c in checks.items() if table.name in names_in(c)}
            by_row = [
                self._candidates_of_row(function, row_checks, row, cell)
                for row, cell in enumerate(table.cells)
            ]
            yield from by_row
            if any(by_row):
                checks = {n: c for n, c in checks.items() if n not in row_checks}
        for number, check in checks.items():
            yield self._candidates_of_check(function, number, check)

    def _candidates_of_row(
        self, function: TestFunction, checks: Mapping[int, Check], row: int, cell: ast.expr
    ) -> list[Unit]:
        """Returns the candidates of a row of the table; all ``checks`` expect its cell."""
        all_tests = (test for number in checks for test in self._tests_by_check.get(number, ()))
        tests = [t for t in dict.fromkeys(all_tests) if function.rows.get(t) == row]
        node, outputs = function.node, self._outputs(checks, tests)
        units = function.file.other_cells(node, cell, [*checks.values()], outputs, self._rng)
        return self._candidates(function, tuple(checks), tests, units)

    def _candidates_of_check(self, function: TestFunction, number: int, check: Check) -> list[Unit]:
        tests = self._tests_by_check.get(number, [])
        outputs = self._outputs([number], tests)
        units = function.file.negations(function.node, check, outputs, self._rng)
        return self._candidates(function, (number,), tests, units)

    def _outputs(self, checks: Iterable[int], tests: Sequence[str]) -> list[str]:
        """Returns ``repr`` of the values that the base compares in checks of some tests."""
        reports = [self._base.get(t, {}).get(n, CheckReport()) for t in tests for n in checks]
        return [text for report in reports for text in report.values]

    def _candidates(
        self,
        function: TestFunction,
        checks: tuple[int, ...],
        tests: Sequence[str],
        units: Iterator[Unit],
    ) -> list[Unit]:
        """Returns the first valid units, each with its checks and the tests that execute them.

        A check that no test executes has no units.
        """
        if not tests:
            return []
        valid_units = (unit for unit in units if function.file.is_valid(function.node, unit.edits))
        return [
            replace(
                unit,
                checks=checks,
                tests=tuple(tests),
                is_bit=unit.is_bit and self._is_hidden(function.file, unit),
            )
            for unit in islice(valid_units, _MAX_CANDIDATES)
        ]

    def _is_hidden(self, file: TestFile, unit: Unit) -> bool:
        """Returns whether the edited lines are neither in the policy's tree nor in the issue."""
        lines = (file.source.line_at(edit.start).strip() for edit in unit.edits)
        return all((file.path, line) in self._hidden for line in lines)


def _new_lines(change: FileChange, content: bytes) -> set[str]:
    """Returns the stripped lines that a change adds, unless the file had them before.

    Args:
        change: The change of a file.
        content: The file after the change.
    """
    lines = change.text.split("\n")
    added_lines = Counter(line[1:].strip() for line in lines if line.startswith("+"))
    removed_lines = Counter(line[1:].strip() for line in lines if line.startswith("-"))
    text = content.decode("utf-8", "surrogateescape")
    lines_before = Counter(line.strip() for line in text.split("\n")) - added_lines + removed_lines
    return added_lines.keys() - lines_before.keys()
