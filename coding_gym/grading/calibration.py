"""Calibration: makes the plan of a task from test runs with the gold patch and at base."""

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
from coding_gym.grading.challenge import RECORDER, Challenge
from coding_gym.grading.negation import Check, Table, TestFile, Unit, names_in
from coding_gym.grading.plan import Plan
from coding_gym.grading.report import CheckReport, Run
from coding_gym.grading.tree import TestTree
from coding_gym.grading.wrong_values import Edit, end_of, start_of
from coding_gym.patch import Patch
from coding_gym.syntax import Function
from coding_gym.task import Task

_MAX_ROUNDS = 24  # pairs of runs
_MAX_TRIES = 4  # to drop failing checks
_MAX_CANDIDATES = 8  # units for one slot
# A test may wait forever with a negated assertion. A run may take so many times the first one, and
# some seconds more.
_MAX_SLOWDOWN = 10.0
_SLACK_S = 10.0


@dataclass(slots=True)
class _Site:
    """A test function, and its checks by number."""

    location: str
    file: TestFile
    node: Function
    checks: dict[int, Check] = field(default_factory=dict)


def calibrate(task: Task, tree: TestTree, gold: Patch, rng: Random) -> Plan:
    """Returns the plan of a task; it is not calibrated if no test passes with the gold patch.

    Args:
        task: The task.
        tree: Makes the runs.
        gold: The gold patch, as it is graded.
        rng: Source of random choices.

    Raises:
        GradingError: The tests do not start with the gold patch.
    """
    start = perf_counter()
    first = tree.run(gold)
    timeout_s = _MAX_SLOWDOWN * (perf_counter() - start) + _SLACK_S
    if first.start_error:  # without a plan, a patch would be graded by the originals alone
        raise GradingError(f"the tests do not start with the gold patch: {first.start_error}")
    if not first.is_whole:
        return Plan()
    builder = _Builder(task, tree, gold, first, timeout_s, rng)
    runs = [first, *builder.drop_failing_checks()]
    passes = {
        test: [run.status(builder.name(test, run)) is TestStatus.PASSED for run in runs]
        for test in task.expected_tests
    }
    stable = [test for test, results in passes.items() if all(results)]
    flaky = [t for t, results in passes.items() if any(results) and t not in stable]
    if not stable:
        return Plan()
    builder.find_slots(stable + flaky, runs[-1])
    if builder.num_slots:
        _keep_working_units(builder, stable)
    bug = [test for test in task.fail_to_pass if test in stable]
    rest = [test for test in stable if test not in bug]
    is_alone = bool(builder.num_slots) and builder.verify_alone(bug, rest)
    return Plan(
        is_calibrated=True,
        challenge=builder.challenge,
        excluded=tuple(test for test in flaky if test not in task.fail_to_pass),
        unstable=tuple(test for test in flaky if test in task.fail_to_pass),
        xfailing=tuple(
            test
            for test in task.expected_tests
            if all(run.status(test) is TestStatus.XFAILED for run in runs)
        ),
        is_plain=builder.is_plain,
        is_alone=is_alone,
    )


def _keep_working_units(builder: "_Builder", stable: Sequence[str]) -> None:
    """Replaces units until runs with the gold patch end as expected."""
    builder.verify(stable, range(builder.num_slots))  # replaces most unusable units
    draws = builder.draws()
    num_verified = 0
    for draw in islice(cycle(draws), _MAX_ROUNDS):
        results = [builder.verify(stable, negated) for negated in builder.versions(stable, draw)]
        num_verified = num_verified + 1 if all(results) else 0
        if num_verified == len(draws):
            break
    else:  # no usable set of units was found
        builder.drop_units()


class _Builder:
    """Builds the challenge of a task from test runs.

    Attributes:
        challenge: The challenge as calibrated so far.
        is_plain: Whether the tests run with ``--assert=plain``.
    """

    def __init__(
        self, task: Task, tree: TestTree, gold: Patch, first: Run, timeout_s: float, rng: Random
    ) -> None:
        self._task, self._tree, self._gold, self._timeout_s = task, tree, gold, timeout_s
        self._first, self._rng, self._records = first, rng, tree.records
        self._functions = tree.functions(first.files)
        self._sites, self._locations = _sites(first.files, self._functions)
        # The remaining candidates of each slot; the first one is in use.
        self._slots: list[list[Unit]] = []
        self._indexes: list[int] = []  # the index of each slot in its function
        self._num_slots_by_site: Counter[int] = Counter()
        added = (line for line in task.test_patch.splitlines() if line.startswith("+"))
        self._hidden = {line[1:].strip() for line in added}
        self._names: dict[str, str] = {}
        self._shared_edits: list[tuple[str, Edit]] = []
        self._tables: dict[int, tuple[Table, dict[str, int]]] = {}
        self.is_plain = tree.records
        number = 0
        for site in self._sites:
            checks = site.file.checks(site.node)
            for check in checks if tree.records else checks[-1:]:
                site.checks[number] = check
                number += 1
        if tree.records:
            self._find_tables()
        self.challenge = self._build({})

    def name(self, test: str, run: Run) -> str:
        """Returns the id of a test in the report of a run."""
        return test if run is self._first else self._names.get(test, test)

    def drop_failing_checks(self) -> list[Run]:
        """Drops checks that fail with the gold patch, and returns two runs with the others."""
        if not self._records:
            return [self._tree.run(self._gold), self._tree.run(self._gold)]
        run = self._run(())
        for _ in range(_MAX_TRIES):
            failing = self._failing(run)
            newly_failing = [
                test
                for test in self._task.expected_tests
                if self._first.status(test) is TestStatus.PASSED
                and run.status(self.name(test, run)) is not TestStatus.PASSED
            ]
            if not failing and not (newly_failing and self.is_plain):
                break
            self.is_plain = self.is_plain and bool(failing)
            self._drop(failing)
            run = self._run(())
        used = {number for rows in self._counts(run).values() for number in rows}
        self._drop({n for site in self._sites for n in site.checks} - used)
        return [run, self._run(())]

    def find_slots(self, tests: Collection[str], run: Run) -> None:
        """Finds the slots and the candidate units of each; ``run`` has the original checks."""
        counts = self._counts(run)
        reached = {test: tuple(sorted(counts.get(test, ()))) for test in tests}
        if not self._records:
            reached = self._by_location(tests)
        executing: dict[int, list[str]] = {}
        for test, numbers in reached.items():
            for number in numbers:
                executing.setdefault(number, []).append(test)
        outputs = self._outputs()
        for index, site in enumerate(self._sites):
            covered: set[int] = set()
            if index in self._tables:
                covered = self._find_rows(index, executing, outputs)
            for number, check in site.checks.items():
                callers = executing.get(number, [])
                if callers and number not in covered:
                    values = [text for test in callers for text in outputs.get((test, number), ())]
                    units = site.file.negations(site.node, check, values, self._rng)
                    self._add_slot(index, (number,), callers, units)
        self.challenge = self._build(reached)

    @property
    def num_slots(self) -> int:
        """Number of slots."""
        return len(self._slots)

    def draws(self) -> list[set[int] | None]:
        """Returns the draws to verify; None stands for a random draw.

        For any two units of a function, one of the draws negates only one of them.
        """
        num_draws = max(self._indexes, default=0).bit_length()
        slots = list(enumerate(self._indexes))
        return [*({n for n, index in slots if index >> bit & 1} for bit in range(num_draws)), None]

    def versions(
        self, tests: Collection[str], draw: Collection[int] | None
    ) -> tuple[Collection[int], Collection[int]]:
        """Returns the units that two opposite versions negate."""
        if draw is None:
            return self.challenge.draw(tests, self._rng)
        return sorted(draw), [n for n in range(len(self._slots)) if n not in draw]

    def drop_units(self) -> None:
        """Removes all units, so that every check stays original."""
        self._slots = [[] for _ in self._slots]
        self.challenge = self._build(self.challenge.reached)

    def verify_alone(self, bug: Sequence[str], rest: Sequence[str]) -> bool:
        """Returns whether fail-to-pass tests can run alone; clears ``is_bit`` as `_clear_bits`.

        They can if all tests, run separately, end as expected with the gold patch, and no
        fail-to-pass test does so at base.
        """
        drawn = self.challenge.draw([*bug, *rest], self._rng)
        is_alone = self._records and bool(bug)
        for tests, negated in ((bug, drawn[0]), (bug, drawn[1]), (rest, drawn[0])):
            is_alone = is_alone and self._ends_alone(tests, negated)
        only = self._function_ids(bug) if is_alone else set()
        passing = set(bug)
        for negated in drawn if bug else ():
            run = self._run(negated, only=only, is_base=True)
            passing &= self._clear_bits(bug, run, negated)
        self.challenge = self._build(self.challenge.reached, is_final=True)
        return is_alone and not passing

    def _ends_alone(self, tests: Sequence[str], negated: Collection[int]) -> bool:
        if not tests:
            return True
        run = self._run(negated, only=self._function_ids(tests))
        ends = {self.challenge.outcome(test, run, negated).status for test in tests}
        return run.is_whole and ends == {TestStatus.PASSED}

    def _function_ids(self, tests: Sequence[str]) -> set[str]:
        """Returns the ids of the test functions of some tests."""
        return {name for test in tests for name in self._functions.get(test, ())}

    def _clear_bits(self, bug: Sequence[str], run: Run, negated: Collection[int]) -> set[str]:
        """Clears ``is_bit`` of units whose checks pass at base; returns the tests that passed."""
        passing = set()
        for test in bug:
            outcome = self.challenge.outcome(test, run, negated)
            counts = run.checks(self.name(test, run))
            passed = {n for n, report in counts.items() if report.num_passed} or (
                outcome.passed | outcome.wrongly_passed
            )
            for candidates in filter(None, self._slots):
                if test in candidates[0].tests and not passed.isdisjoint(candidates[0].checks):
                    candidates[0] = replace(candidates[0], is_bit=False)
            if outcome.status is TestStatus.PASSED:
                passing.add(test)
        return passing

    def _run(
        self,
        negated: Collection[int],
        *,
        only: Collection[str] = (),
        is_base: bool = False,
        extra_edits: Iterable[tuple[str, Edit]] = (),
    ) -> Run:
        rewrite = partial(self.challenge.rewritten, negated=negated, extra_edits=extra_edits)
        return self._tree.run(
            Patch() if is_base else self._gold,
            rewrite,
            only=only,
            num_checks=len(self.challenge.checks),
            is_plain=self.is_plain,
            timeout_s=self._timeout_s,
        )

    def verify(self, tests: Collection[str], negated: Collection[int]) -> bool:
        """Returns whether a run ends as expected; if not, replaces the units that prevented it."""
        active = [number for number in negated if self._slots[number]]
        run = self._run(active)
        rejected: set[int] = set()
        is_expected = run.is_whole
        if not run.is_whole and active:
            rejected.add(self._breaking_unit(active))
        for test in tests if run.is_whole else ():
            outcome = self.challenge.outcome(test, run, active)
            is_expected = is_expected and outcome.status is TestStatus.PASSED
            counts = run.checks(self.name(test, run))
            numbers = [number for number in active if test in self._slots[number][0].tests]
            for number in numbers:
                unit = self._slots[number][0]
                if outcome.wrongly_passed.intersection(unit.checks):
                    if all(counts.get(check, CheckReport()).num_failed for check in unit.checks):
                        self._slots[number][0] = replace(unit, is_every=False)
                    else:
                        rejected.add(number)
            if outcome.failed:
                rejected.update(self._suspects(test, counts, numbers, active))
        for number in rejected:
            del self._slots[number][:1]
        self.challenge = self._build(self.challenge.reached)
        return is_expected and not rejected

    def _breaking_unit(self, active: Sequence[int]) -> int:
        """Returns a unit with which a run does not complete or changes the test files."""
        while len(active) > 1:
            half = active[: len(active) // 2]
            active = active[len(half) :] if self._run(half).is_whole else half
        return active[0]

    def _suspects(
        self, test: str, counts: Mapping[int, object], numbers: Sequence[int], active: Sequence[int]
    ) -> list[int]:
        """Returns units that may cause a failure: the last executed one, or all of the file."""
        if numbers:
            executed = [
                n for n in numbers if not counts or counts.keys() & set(self._slots[n][0].checks)
            ]
            return [max(executed or numbers, key=lambda number: self._slots[number][0].checks)]
        path = test.partition("::")[0]
        same_file = [n for n in active if self._slots[n][0].path == path]
        return same_file or list(active)

    def _failing(self, run: Run) -> set[int]:
        counts = self._counts(run).values()
        return {n for reports in counts for n, report in reports.items() if report.num_failed}

    def _counts(self, run: Run) -> dict[str, Mapping[int, CheckReport]]:
        """Returns the reports of the checks that each expected test reached, by test."""
        return {
            test: run.checks(self.name(test, run))
            for test in self._task.expected_tests
            if self._first.status(test) is not TestStatus.MISSING
        }

    def _drop(self, numbers: Collection[int]) -> None:
        """Removes some checks, so that their assertions stay as written; renumbers the others."""
        new = 0
        for site in self._sites:
            kept = [check for number, check in site.checks.items() if number not in numbers]
            site.checks = dict(enumerate(kept, start=new))
            new += len(kept)
        self.challenge = self._build({})

    def _by_location(self, tests: Collection[str]) -> dict[str, tuple[int, ...]]:
        """Returns the checks in the source of each test, for runners that record no assertions."""
        known = {site.location: tuple(site.checks) for site in self._sites}
        checks = {}
        for test in tests:
            locations = {self._locations.get(name, "") for name in self._functions.get(test, ())}
            if locations and "" not in locations:
                checks[test] = tuple(sorted({n for place in locations for n in known[place]}))
        return checks

    def _outputs(self) -> dict[tuple[str, int], Sequence[str]]:
        """Returns the values that the base compares, as text by test and check."""
        if not self._records:
            return {}
        extra_edits: list[tuple[str, Edit]] = []
        for site in self._sites:
            edits: list[Edit] = []
            for number, check in site.checks.items():
                if check.actual is not None:
                    start, end = start_of(check.actual), end_of(check.actual)
                    edits += [(start, start, f"{RECORDER}[{number}].see("), (end, end, ")")]
            if site.file.is_valid(site.node, edits):
                extra_edits += [(site.file.path, edit) for edit in edits]
        run = self._run((), is_base=True, extra_edits=extra_edits)
        return {
            (test, number): report.values
            for test, reports in self._counts(run).items()
            for number, report in reports.items()
        }

    def _find_tables(self) -> None:
        """Finds parameter tables, and replaces ids of their rows that reveal the values."""
        reported = list(self._first.statuses)
        for index, site in enumerate(self._sites):
            table = site.file.table(site.node, list(site.checks.values()))
            if table is None:
                continue
            rows: dict[str, int] = {}
            for name in (n for n, location in self._locations.items() if location == site.location):
                ids = [test_id for test_id in reported if test_id.startswith(f"{name}[")]
                if len(ids) != len(table.cells):
                    break
                rows |= {test_id: row for row, test_id in enumerate(ids)}
            else:
                self._tables[index] = table, rows
                if table.ids:
                    self._shared_edits += [(site.file.path, edit) for edit in table.ids]
                    self._names |= {
                        t: f"{t.partition('[')[0]}[row{row}]" for t, row in rows.items()
                    }

    def _find_rows(
        self,
        index: int,
        executing: Mapping[int, Sequence[str]],
        outputs: Mapping[tuple[str, int], Sequence[str]],
    ) -> set[int]:
        """Adds a slot for each row of a table, and returns the checks that use the table."""
        site = self._sites[index]
        table, rows = self._tables[index]
        checks = tuple(n for n, check in site.checks.items() if table.name in names_in(check))
        has_slot = False
        for row, cell in enumerate(table.cells):
            tests = [
                test
                for number in checks
                for test in executing.get(number, ())
                if rows.get(test) == row
            ]
            if tests:
                values = [text for t in tests for c in checks for text in outputs.get((t, c), ())]
                is_exact = all(site.checks[number].is_exact for number in checks)
                units = site.file.other_cells(site.node, cell, values, self._rng, is_exact=is_exact)
                has_slot |= self._add_slot(index, checks, tests, units)
        return set(checks) if has_slot else set()

    def _add_slot(
        self, index: int, checks: tuple[int, ...], tests: Sequence[str], candidates: Iterator[Unit]
    ) -> bool:
        site, names = self._sites[index], tuple(dict.fromkeys(tests))
        valid = (unit for unit in candidates if site.file.is_valid(site.node, unit.edits))
        units = [
            replace(
                unit,
                checks=checks,
                tests=names,
                is_bit=unit.is_bit and self._is_hidden(site.file, unit),
            )
            for unit in islice(valid, _MAX_CANDIDATES)
        ]
        if units:
            self._slots.append(units)
            self._indexes.append(self._num_slots_by_site[index])
            self._num_slots_by_site[index] += 1
        return bool(units)

    def _build(
        self, reached: Mapping[str, tuple[int, ...]], *, is_final: bool = False
    ) -> Challenge:
        """Returns the challenge; the final one omits slots without a unit, so numbers change."""
        no_unit = Unit(path="", edits=(), level=Level.STRUCTURE)
        units = [candidates[0] if candidates else no_unit for candidates in self._slots]
        paths = sorted({site.file.path for site in self._sites})
        return Challenge(
            checks=tuple(check.where for site in self._sites for check in site.checks.values()),
            units=tuple(unit for unit in units if unit.tests or not is_final),
            reached=reached,
            names=self._names,
            shape=tuple(self._shared_edits),
            digests={path: sha256(self._first.files[path]).hexdigest() for path in paths},
            is_recorded=self._records,
        )

    def _is_hidden(self, file: TestFile, unit: Unit) -> bool:
        """Whether the negated lines are in the test patch, and so hidden from the policy."""
        return all(file.lines[start[0] - 1].strip() in self._hidden for start, _, _ in unit.edits)


def _sites(
    files: Mapping[str, bytes], functions: Mapping[str, Sequence[str]]
) -> tuple[list[_Site], dict[str, str]]:
    """Returns the readable functions of the expected tests, and the location of each by its id."""
    read: dict[str, TestFile | None] = {}
    sites: dict[str, _Site] = {}
    locations: dict[str, str] = {}
    for name in dict.fromkeys(name for names in functions.values() for name in names):
        path, _, local_name = name.partition("::")
        if path not in read:
            read[path] = _test_file(path, files)
        file = read[path]
        place = file.place(local_name) if file and local_name else ""
        node = file.node(place) if file and place else None
        if file is None or node is None:
            continue
        locations[name] = location = f"{path}::{place}"
        sites.setdefault(location, _Site(location, file, node))
    return list(sites.values()), locations


def _test_file(path: str, files: Mapping[str, bytes]) -> TestFile | None:
    try:
        return TestFile.read(path, files[path]) if path.endswith(".py") and path in files else None
    except (SyntaxError, ValueError, RecursionError, LookupError):
        return None  # the syntax of another Python version, or not a text
