"""Makes the plan of a task from test runs with the gold patch and on the base tree."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import cycle, islice
from random import Random
from time import perf_counter

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
_MAX_TRIES = 4
_MAX_WAYS = 8  # to negate one check
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
    """Returns the plan of a task; not calibrated if no test passes with the gold patch.

    Args:
        task: The task.
        tree: Makes the runs.
        gold: The gold patch, as it is graded.
        rng: Chooses near misses.
    """
    start = perf_counter()
    first = tree.run(gold)
    timeout_s = _MAX_SLOWDOWN * (perf_counter() - start) + _SLACK_S
    if not first.is_whole:
        return Plan()
    maker = _Maker(task, tree, gold, first, timeout_s, rng)
    runs = [first, *maker.settle_originals()]
    passes = {
        test: [one.status(maker.name(test, one)) is TestStatus.PASSED for one in runs]
        for test in task.expected_tests
    }
    steady = [test for test, results in passes.items() if all(results)]
    uneven = [t for t, results in passes.items() if any(results) and t not in steady]
    if not steady:
        return Plan()
    maker.find_slots(steady + uneven, runs[-1])
    if maker.num_slots:
        _settle_negations(maker, steady)
    bug = [test for test in task.fail_to_pass if test in steady]
    rest = [test for test in steady if test not in bug]
    is_alone = bool(maker.num_slots) and maker.verify_alone(bug, rest)
    return Plan(
        is_calibrated=True,
        challenge=maker.challenge,
        excluded=tuple(test for test in uneven if test not in task.fail_to_pass),
        unstable=tuple(test for test in uneven if test in task.fail_to_pass),
        xfailing=tuple(
            test
            for test in task.expected_tests
            if all(one.status(test) is TestStatus.XFAILED for one in runs)
        ),
        is_plain=maker.is_plain,
        is_alone=is_alone,
    )


def _settle_negations(maker: "_Maker", steady: Sequence[str]) -> None:
    """Drops negations until runs with the gold patch end as expected."""
    maker.is_clean(steady, range(maker.num_slots))  # removes most unusable negations
    kinds = maker.kinds()
    num_clean = 0
    for kind in islice(cycle(kinds), _MAX_ROUNDS):
        results = [maker.is_clean(steady, negated) for negated in maker.pair(steady, kind)]
        num_clean = num_clean + 1 if all(results) else 0
        if num_clean == len(kinds):
            break
    else:  # no stable set of negations was found
        maker.drop_negations()


class _Maker:
    """Builds a challenge from test runs.

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
        # The remaining ways to negate each slot; the first one is in use.
        self._ways: list[list[Unit]] = []
        self._places: list[int] = []  # the index of each slot in its function
        self._sizes: Counter[int] = Counter()
        added = (line for line in task.test_patch.splitlines() if line.startswith("+"))
        self._hidden = {line[1:].strip() for line in added}
        self._names: dict[str, str] = {}
        self._shape: list[tuple[str, Edit]] = []
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
        self.challenge = self._built({})

    def name(self, test: str, run: Run) -> str:
        """Returns the id under which a run reports a test."""
        return test if run is self._first else self._names.get(test, test)

    def settle_originals(self) -> list[Run]:
        """Drops checks that fail with the gold patch, and returns two runs of the others."""
        if not self._records:
            return [self._tree.run(self._gold), self._tree.run(self._gold)]
        run = self._play(())
        for _ in range(_MAX_TRIES):
            failing = self._failing(run)
            lost = [
                test
                for test in self._task.expected_tests
                if self._first.status(test) is TestStatus.PASSED
                and run.status(self.name(test, run)) is not TestStatus.PASSED
            ]
            if not failing and not (lost and self.is_plain):
                break
            self.is_plain = self.is_plain and bool(failing)
            self._drop(failing)
            run = self._play(())
        used = {number for rows in self._counts(run).values() for number in rows}
        self._drop({n for site in self._sites for n in site.checks} - used)
        return [run, self._play(())]

    def find_slots(self, tests: Collection[str], run: Run) -> None:
        """Finds the slots, from the checks that tests reach and the base's outputs."""
        counts = self._counts(run)
        reached = {test: tuple(sorted(counts.get(test, ()))) for test in tests}
        if not self._records:
            reached = self._by_location(tests)
        executing: dict[int, list[str]] = {}
        for test, numbers in reached.items():
            for number in numbers:
                executing.setdefault(number, []).append(test)
        outputs = self._outputs()
        for at, site in enumerate(self._sites):
            covered: set[int] = set()
            if at in self._tables:
                covered = self._find_rows(at, executing, outputs)
            for number, check in site.checks.items():
                callers = executing.get(number, [])
                if callers and number not in covered:
                    values = [text for test in callers for text in outputs.get((test, number), ())]
                    ways = site.file.negations(site.node, check, values, self._rng)
                    self._add(at, (number,), callers, ways)
        self.challenge = self._built(reached)

    @property
    def num_slots(self) -> int:
        """Number of slots: places that are negated independently of each other."""
        return len(self._ways)

    def kinds(self) -> list[set[int] | None]:
        """Returns draws, one of which negates only one of any two units of a function.

        None stands for a random draw.
        """
        num_kinds = max(self._places, default=0).bit_length()
        places = list(enumerate(self._places))
        return [*({n for n, at in places if at >> bit & 1} for bit in range(num_kinds)), None]

    def pair(
        self, tests: Collection[str], kind: Collection[int] | None
    ) -> tuple[Collection[int], Collection[int]]:
        """Returns the units that two opposite versions negate."""
        if kind is None:
            return self.challenge.draw(tests, self._rng)
        return sorted(kind), [n for n in range(len(self._ways)) if n not in kind]

    def drop_negations(self) -> None:
        """Removes all negations: every check stays as written."""
        self._ways = [[] for _ in self._ways]
        self.challenge = self._built(self.challenge.reached)

    def verify_alone(self, bug: Sequence[str], rest: Sequence[str]) -> bool:
        """Marks units that pass at base; returns whether fail-to-pass tests can run alone.

        They can if, run separately, all tests end as expected with the gold patch, and no
        fail-to-pass test does so at base.
        """
        drawn = self.challenge.draw([*bug, *rest], self._rng)
        is_alone = self._records and bool(bug)
        for tests, negated in ((bug, drawn[0]), (bug, drawn[1]), (rest, drawn[0])):
            is_alone = is_alone and self._ends_alone(tests, negated)
        only = self._named(bug) if is_alone else set()
        right = set(bug)
        for negated in drawn if bug else ():
            run = self._play(negated, only=only, is_base=True)
            right &= self._note_known(bug, run, negated)
        self.challenge = self._built(self.challenge.reached, is_final=True)
        return is_alone and not right

    def _ends_alone(self, tests: Sequence[str], negated: Collection[int]) -> bool:
        if not tests:
            return True
        run = self._play(negated, only=self._named(tests))
        ends = {self.challenge.outcome(test, run, negated).status for test in tests}
        return run.is_whole and ends == {TestStatus.PASSED}

    def _named(self, tests: Sequence[str]) -> set[str]:
        """Returns the ids of the test functions of some tests."""
        return {name for test in tests for name in self._functions.get(test, ())}

    def _note_known(self, bug: Sequence[str], run: Run, negated: Collection[int]) -> set[str]:
        """Marks units whose checks pass at base; returns the tests that end as expected."""
        right = set()
        for test in bug:
            outcome = self.challenge.outcome(test, run, negated)
            counts = run.checks(self.name(test, run))
            passed = {n for n, row in counts.items() if row[0]} or (
                outcome.passed | outcome.deceived
            )
            for ways in filter(None, self._ways):
                if test in ways[0].tests and not passed.isdisjoint(ways[0].checks):
                    ways[0] = replace(ways[0], is_bit=False)
            if outcome.status is TestStatus.PASSED:
                right.add(test)
        return right

    def _play(
        self,
        negated: Collection[int],
        *,
        only: Collection[str] = (),
        is_base: bool = False,
        more: Iterable[tuple[str, Edit]] = (),
    ) -> Run:
        rewrite = partial(self.challenge.rewritten, negated=negated, more=more)
        return self._tree.run(
            Patch() if is_base else self._gold,
            rewrite,
            only=only,
            num_checks=len(self.challenge.checks),
            is_plain=self.is_plain,
            timeout_s=self._timeout_s,
        )

    def is_clean(self, tests: Collection[str], negated: Collection[int]) -> bool:
        """Whether a run ends as expected; if not, replaces the negations that prevented it."""
        live = [number for number in negated if self._ways[number]]
        run = self._play(live)
        culprits: set[int] = set()
        is_clean = run.is_whole
        if not run.is_whole and live:
            culprits.add(self._blamed(live))
        for test in tests if run.is_whole else ():
            outcome = self.challenge.outcome(test, run, live)
            is_clean = is_clean and outcome.status is TestStatus.PASSED
            counts = run.checks(self.name(test, run))
            numbers = [number for number in live if test in self._ways[number][0].tests]
            for number in numbers:
                unit = self._ways[number][0]
                if outcome.deceived.intersection(unit.checks):
                    if all(counts.get(check, (0, 0))[1] for check in unit.checks):
                        self._ways[number][0] = replace(unit, is_every=False)
                    else:
                        culprits.add(number)
            if outcome.failed:
                culprits.update(self._suspects(test, counts, numbers, live))
        for number in culprits:
            del self._ways[number][:1]
        self.challenge = self._built(self.challenge.reached)
        return is_clean and not culprits

    def _blamed(self, live: Sequence[int]) -> int:
        """Returns a negation with which a run does not complete, or changes the test files."""
        while len(live) > 1:
            half = live[: len(live) // 2]
            live = live[len(half) :] if self._play(half).is_whole else half
        return live[0]

    def _suspects(
        self, test: str, counts: Mapping[int, object], numbers: Sequence[int], live: Sequence[int]
    ) -> list[int]:
        """Returns likely causes of a failure: the last executed negation, or all of the file."""
        if numbers:  # the last one that was executed
            done = [
                n for n in numbers if not counts or counts.keys() & set(self._ways[n][0].checks)
            ]
            return [max(done or numbers, key=lambda number: self._ways[number][0].checks)]
        path = test.partition("::")[0]
        of_file = [n for n in live if self._ways[n][0].path == path]
        return of_file or list(live)

    def _failing(self, run: Run) -> set[int]:
        counts = self._counts(run).values()
        return {number for rows in counts for number, row in rows.items() if row[1]}

    def _counts(self, run: Run) -> dict[str, Mapping[int, CheckReport]]:
        """Returns the checks that each expected test reached, by test."""
        return {
            test: run.checks(self.name(test, run))
            for test in self._task.expected_tests
            if self._first.status(test) is not TestStatus.MISSING
        }

    def _drop(self, numbers: Collection[int]) -> None:
        """Removes some checks, which stay as written, and renumbers the others."""
        new = 0
        for site in self._sites:
            kept = [check for number, check in site.checks.items() if number not in numbers]
            site.checks = dict(enumerate(kept, start=new))
            new += len(kept)
        self.challenge = self._built({})

    def _by_location(self, tests: Collection[str]) -> dict[str, tuple[int, ...]]:
        """Returns the checks in the source of each test, for runners that record no assertions."""
        known = {site.location: tuple(site.checks) for site in self._sites}
        checks = {}
        for test in tests:
            locations = {self._locations.get(name, "") for name in self._functions.get(test, ())}
            if locations and "" not in locations:
                checks[test] = tuple(sorted({n for one in locations for n in known[one]}))
        return checks

    def _outputs(self) -> dict[tuple[str, int], list[str]]:
        """Returns the values that the base compares, as text by test and check."""
        if not self._records:
            return {}
        more: list[tuple[str, Edit]] = []
        for site in self._sites:
            edits: list[Edit] = []
            for number, check in site.checks.items():
                if check.actual is not None:
                    start, end = start_of(check.actual), end_of(check.actual)
                    edits += [(start, start, f"{RECORDER}[{number}].see("), (end, end, ")")]
            if site.file.is_sound(site.node, edits):
                more += [(site.file.path, edit) for edit in edits]
        run = self._play((), is_base=True, more=more)
        return {
            (test, number): row[3]
            for test, rows in self._counts(run).items()
            for number, row in rows.items()
        }

    def _find_tables(self) -> None:
        """Finds parameter tables; the ids of their rows must not reveal the values."""
        reported = list(self._first.statuses)
        for at, site in enumerate(self._sites):
            table = site.file.table(site.node, list(site.checks.values()))
            if table is None:
                continue
            rows: dict[str, int] = {}
            for name in (n for n, location in self._locations.items() if location == site.location):
                names = [one for one in reported if one.startswith(f"{name}[")]
                if len(names) != len(table.cells):
                    break
                rows |= {one: row for row, one in enumerate(names)}
            else:
                self._tables[at] = table, rows
                if table.ids:
                    self._shape += [(site.file.path, edit) for edit in table.ids]
                    self._names |= {
                        one: f"{one.partition('[')[0]}[row{row}]" for one, row in rows.items()
                    }

    def _find_rows(
        self,
        at: int,
        executing: Mapping[int, Sequence[str]],
        outputs: Mapping[tuple[str, int], Sequence[str]],
    ) -> set[int]:
        """Adds a slot for each row of a table, and returns the checks that use the table."""
        site = self._sites[at]
        table, rows = self._tables[at]
        checks = tuple(n for n, check in site.checks.items() if table.name in names_in(check))
        is_found = False
        for row, cell in enumerate(table.cells):
            tests = [
                test
                for number in checks
                for test in executing.get(number, ())
                if rows.get(test) == row
            ]
            if tests:
                seen = [text for t in tests for c in checks for text in outputs.get((t, c), ())]
                is_exact = all(site.checks[number].is_exact for number in checks)
                ways = site.file.other_cells(site.node, cell, seen, self._rng, is_exact=is_exact)
                is_found |= self._add(at, checks, tests, ways)
        return set(checks) if is_found else set()

    def _add(
        self, at: int, checks: tuple[int, ...], tests: Sequence[str], ways: Iterator[Unit]
    ) -> bool:
        site, names = self._sites[at], tuple(dict.fromkeys(tests))
        sound = (way for way in ways if site.file.is_sound(site.node, way.edits))
        units = [
            replace(
                way,
                checks=checks,
                tests=names,
                is_bit=way.is_bit and self._is_hidden(site.file, way),
            )
            for way in islice(sound, _MAX_WAYS)
        ]
        if units:
            self._ways.append(units)
            self._places.append(self._sizes[at])
            self._sizes[at] += 1
        return bool(units)

    def _built(
        self, reached: Mapping[str, tuple[int, ...]], *, is_final: bool = False
    ) -> Challenge:
        """Returns the challenge; the final one is without unused units, so numbers change."""
        nothing = Unit(path="", edits=(), level=Level.STRUCTURE)
        units = [ways[0] if ways else nothing for ways in self._ways]
        paths = sorted({site.file.path for site in self._sites})
        return Challenge(
            checks=tuple(check.where for site in self._sites for check in site.checks.values()),
            units=tuple(unit for unit in units if unit.tests or not is_final),
            reached=reached,
            names=self._names,
            shape=tuple(self._shape),
            digests={path: sha256(self._first.files[path]).hexdigest() for path in paths},
            is_recorded=self._records,
        )

    def _is_hidden(self, file: TestFile, way: Unit) -> bool:
        """Whether the negated lines are in the test patch, and so hidden from the policy."""
        return all(file.lines[start[0] - 1].strip() in self._hidden for start, _, _ in way.edits)


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
