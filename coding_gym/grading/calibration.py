"""Makes the plan of a task by runs of its tests with the gold patch and at base."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from random import Random

from coding_gym import syntax
from coding_gym.grade import Level, TestStatus
from coding_gym.grading.challenge import (
    RECORDER,
    Challenge,
    CheckPlace,
    TestFunction,
    Unit,
    digest_of,
)
from coding_gym.grading.negation import (
    Check,
    Negation,
    Table,
    TestFile,
    applied,
    names_in,
)
from coding_gym.grading.plan import Plan
from coding_gym.grading.report import CheckReport, Run
from coding_gym.grading.wrong_values import Edit, end_of, start_of
from coding_gym.syntax import Function, first_line
from coding_gym.task import Task

_MAX_ROUNDS = 24  # pairs of runs
_MAX_TRIES = 4
_MAX_WAYS = 8  # to negate one check

Runs = Callable[..., Run]
"""`TestTree.run` with the gold patch; with ``is_base``, at base."""


FunctionsOf = Callable[[Mapping[str, bytes]], Mapping[str, tuple[str, ...]]]


@dataclass(slots=True)
class _Site:
    """A function of the tests: as syntax, and as plans have it; its checks by their numbers."""

    location: str
    file: TestFile
    node: Function
    function: TestFunction
    checks: dict[int, Check] = field(default_factory=dict)

    def relative(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Returns edits whose lines count from the function's first one, which is 1."""
        by = self.function.first_line - 1
        return tuple(((a - by, b), (c - by, d), text) for (a, b), (c, d), text in edits)

    def is_sound(self, edits: Sequence[Edit]) -> bool:
        """Whether the function with edits is Python."""
        start = self.function.first_line - 1
        lines = self.file.lines[start : start + self.function.num_lines]
        try:
            text = applied(lines, self.relative(edits))
            syntax.parse(("if True:\n" if self.node.col_offset else "") + text)
        except (SyntaxError, ValueError):
            return False
        return True


@dataclass(slots=True)
class _Slot:
    """One place to negate, with the ways that are left; a unit is made of the first of them."""

    site: int
    checks: tuple[int, ...]
    tests: tuple[str, ...]
    ways: list[Negation]
    is_every: bool = True
    is_known: bool = False

    def advance(self) -> None:
        """Goes on to the next way."""
        del self.ways[:1]
        self.is_every = True


def calibrate(
    task: Task, functions_of: FunctionsOf, run: Runs, rng: Random, *, records: bool
) -> Plan:
    """Returns the plan of a task; one that is not calibrated if no test passes with the gold patch.

    Args:
        task: The task.
        functions_of: Returns the ids, without parameters, of the test functions of each expected
            test, by the content of the test files.
        run: Makes the runs.
        rng: Chooses near misses.
        records: Whether checks can record their outcomes.
    """
    first = run()
    if not first.has_ended or first.forgery:
        return Plan()
    maker = _Maker(task, first, functions_of(first.files), run, rng, records=records)
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
    maker.settle_negations(steady)
    bug = [test for test in task.fail_to_pass if test in steady]
    is_alone = maker.verify_alone(bug, [test for test in steady if test not in bug])
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


class _Maker:
    """Makes a challenge by runs.

    Attributes:
        challenge: What it is so far.
        is_plain: Whether pytest need not explain assertions that fail.
    """

    def __init__(
        self,
        task: Task,
        first: Run,
        functions: Mapping[str, Sequence[str]],
        run: Runs,
        rng: Random,
        *,
        records: bool,
    ) -> None:
        self._task, self._run, self._rng, self._first = task, run, rng, first
        self._functions = functions
        self._sites, self._locations = _sites(first.files, functions)
        self._slots: list[_Slot] = []
        added = (line for line in task.test_patch.splitlines() if line.startswith("+"))
        self._hidden = {line[1:].strip() for line in added}
        self._names: dict[str, str] = {}
        self._tables: dict[int, tuple[Table, dict[str, int]]] = {}
        self._records = records
        self.is_plain = records
        number = 0
        for site in self._sites:
            found = site.file.checks(site.node)
            for check in found if records else found[-1:]:
                site.checks[number] = check
                number += 1
        if records:
            self._find_tables()
        self.challenge = self._built({})

    def name(self, test: str, run: Run) -> str:
        """Returns the name of a test in a run."""
        return test if run is self._first else self._names.get(test, test)

    def settle_originals(self) -> list[Run]:
        """Drops checks that fail with the gold patch, and returns two runs of the others."""
        if not self._records:
            return [self._run(), self._run()]
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
        """Finds what can be negated, by the checks that tests reach and the base's outputs."""
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
                own = executing.get(number, [])
                if own and number not in covered:
                    seen = [text for test in own for text in outputs.get((test, number), ())]
                    ways = site.file.negations(site.node, check, seen, self._rng)
                    self._add(at, (number,), own, ways)
        self.challenge = self._built(reached)

    def settle_negations(self, tests: Collection[str]) -> None:
        """Replaces negations until all draws of some kinds end as expected, one after the other.

        Any two units of a function are negated apart in one of them; the last one is random.
        """
        self._is_clean(tests, range(len(self._slots)))
        places: Counter[int] = Counter()
        order = []
        for slot in self._slots:
            order.append(places[slot.site])
            places[slot.site] += 1
        num_kinds = max(order, default=0).bit_length()
        num_clean = 0
        for at in range(_MAX_ROUNDS):
            kind = at % (num_kinds + 1)
            chosen = {n for n, place in enumerate(order) if place >> kind & 1}
            if kind == num_kinds:
                chosen = set(self._drawn(tests)[0])
            others = set(range(len(self._slots))) - chosen
            results = [self._is_clean(tests, sorted(one)) for one in (chosen, others)]
            num_clean = num_clean + 1 if all(results) else 0
            if num_clean > num_kinds:
                return
        for slot in self._slots:  # no draw is known to do no harm
            slot.ways.clear()
        self.challenge = self._built(self.challenge.reached)

    def verify_alone(self, bug: Sequence[str], rest: Sequence[str]) -> bool:
        """Finds what the base shows, and whether the tests of the bug, and the others, run alone.

        Then they end as expected with the gold patch, and those of the bug do not at base.
        """
        drawn = self._drawn([*bug, *rest])
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
        """Returns the ids of the functions of tests."""
        return {name for test in tests for name in self._functions.get(test, ())}

    def _note_known(self, bug: Sequence[str], run: Run, negated: Collection[int]) -> set[str]:
        """Notes units that work at base, and returns the tests that end as they should."""
        right = set()
        for test in bug:
            outcome = self.challenge.outcome(test, run, negated)
            counts = run.checks(self.name(test, run))
            passed = {n for n, row in counts.items() if row[0]} or (
                outcome.passed | outcome.deceived
            )
            for slot in self._slots:
                slot.is_known |= test in slot.tests and not passed.isdisjoint(slot.checks)
            if outcome.status is TestStatus.PASSED:
                right.add(test)
        return right

    def _play(
        self,
        negated: Collection[int],
        *,
        only: Collection[str] = (),
        is_base: bool = False,
        more: Mapping[int, Sequence[Edit]] = {},
    ) -> Run:
        rewrite = partial(self.challenge.rewritten, negated=negated, more=more)
        if not self._records:
            return self._run(rewrite, is_base=is_base)
        return self._run(
            rewrite,
            is_base=is_base,
            only=only,
            num_checks=len(self.challenge.checks),
            is_plain=self.is_plain,
        )

    def _drawn(self, tests: Collection[str]) -> tuple[frozenset[int], frozenset[int]]:
        return self.challenge.draw(tests, self._rng)

    def _is_clean(self, tests: Collection[str], negated: Collection[int]) -> bool:
        """Whether a run ends as expected; if not, goes on to other negations."""
        live = [number for number in negated if self._slots[number].ways]
        run = self._play(live)
        if not run.is_whole and live:
            self._slots[self._blamed(live)].advance()
            self.challenge = self._built(self.challenge.reached)
            return False
        culprits: set[int] = set()
        for test in tests:
            outcome = self.challenge.outcome(test, run, live)
            counts = run.checks(self.name(test, run))
            own = [number for number in live if test in self._slots[number].tests]
            for number in own:
                slot = self._slots[number]
                if outcome.deceived.intersection(slot.checks):
                    if all(counts.get(check, (0, 0))[1] for check in slot.checks):
                        slot.is_every = False
                    else:
                        culprits.add(number)
            if outcome.failed:
                culprits.update(self._suspects(test, counts, own, live))
        for number in culprits:
            self._slots[number].advance()
        is_clean = not culprits and all(
            self.challenge.outcome(test, run, live).status is TestStatus.PASSED for test in tests
        )
        self.challenge = self._built(self.challenge.reached)
        return is_clean

    def _blamed(self, live: Sequence[int]) -> int:
        """Returns a negation that keeps a run from ending, or writes into the test files."""
        while len(live) > 1:
            half = live[: len(live) // 2]
            live = live[len(half) :] if self._play(half).is_whole else half
        return live[0]

    def _suspects(
        self, test: str, counts: Mapping[int, object], own: Sequence[int], live: Sequence[int]
    ) -> list[int]:
        """Returns the negations that can explain a wrong test: its last one, else its file's."""
        if own:  # the last one that was executed
            done = [n for n in own if not counts or counts.keys() & set(self._slots[n].checks)]
            return [max(done or own, key=lambda number: self._slots[number].checks)]
        path = test.partition("::")[0]
        of_file = [n for n in live if self._sites[self._slots[n].site].function.path == path]
        return of_file or list(live)

    def _failing(self, run: Run) -> set[int]:
        counts = self._counts(run).values()
        return {number for rows in counts for number, row in rows.items() if row[1]}

    def _counts(self, run: Run) -> dict[str, Mapping[int, CheckReport]]:
        """Returns what each expected test that passed before says of its checks."""
        return {
            test: run.checks(self.name(test, run))
            for test in self._task.expected_tests
            if self._first.status(test) is not TestStatus.MISSING
        }

    def _drop(self, numbers: Collection[int]) -> None:
        """Leaves some checks as they are written, and numbers the others anew."""
        new = 0
        for site in self._sites:
            kept = [check for number, check in site.checks.items() if number not in numbers]
            site.checks = dict(enumerate(kept, start=new))
            new += len(kept)
        self.challenge = self._built({})

    def _by_location(self, tests: Collection[str]) -> dict[str, tuple[int, ...]]:
        """Returns the checks of the functions of tests, where these cannot tell."""
        known = {site.location: tuple(site.checks) for site in self._sites}
        found = {}
        for test in tests:
            locations = {self._locations.get(name, "") for name in self._functions.get(test, ())}
            if locations and "" not in locations:
                found[test] = tuple(sorted({n for one in locations for n in known[one]}))
        return found

    def _outputs(self) -> dict[tuple[str, int], list[str]]:
        """Returns the values that the base compares, as text by test and check."""
        if not self._records:
            return {}
        more: dict[int, tuple[Edit, ...]] = {}
        for at, site in enumerate(self._sites):
            edits: list[Edit] = []
            for number, check in site.checks.items():
                if check.actual is not None:
                    start, end = start_of(check.actual), end_of(check.actual)
                    edits += [(start, start, f"{RECORDER}[{number}].see("), (end, end, ")")]
            more[at] = site.relative(edits) if site.is_sound(edits) else ()
        run = self._play((), is_base=True, more=more)
        return {
            (test, number): row[3]
            for test, rows in self._counts(run).items()
            for number, row in rows.items()
        }

    def _find_tables(self) -> None:
        """Finds tables of parameters, whose rows get names that do not tell their values."""
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
                    shape = site.relative(table.ids)
                    site.function = replace(site.function, shape=shape)
                    self._names |= {
                        one: f"{one.partition('[')[0]}[row{row}]" for one, row in rows.items()
                    }

    def _find_rows(
        self,
        at: int,
        executing: Mapping[int, Sequence[str]],
        outputs: Mapping[tuple[str, int], Sequence[str]],
    ) -> set[int]:
        """Adds a slot for each row of a table, and returns the checks that they are for."""
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
                ways = site.file.other_cells(site.node, cell, seen, self._rng)
                is_found |= self._add(at, checks, tests, ways)
        return set(checks) if is_found else set()

    def _add(
        self, at: int, checks: tuple[int, ...], tests: Sequence[str], ways: Iterator[Negation]
    ) -> bool:
        sound = (way for way in ways if self._sites[at].is_sound(way.edits))
        found = list(islice(sound, _MAX_WAYS))
        if found:
            names = tuple(dict.fromkeys(tests))
            self._slots.append(_Slot(site=at, checks=checks, tests=names, ways=found))
        return bool(found)

    def _built(
        self, reached: Mapping[str, tuple[int, ...]], *, is_final: bool = False
    ) -> Challenge:
        """Returns the challenge; units have the numbers of their slots until it is final."""
        places = []
        for at, site in enumerate(self._sites):
            for check in site.checks.values():
                line, column = check.place
                place = CheckPlace(
                    function=at,
                    place=(line - site.function.first_line + 1, column),
                    is_item=check.is_item,
                    is_optional=check.is_optional,
                )
                places.append(place)
        units = map(self._unit, self._slots)
        return Challenge(
            functions=tuple(site.function for site in self._sites),
            checks=tuple(places),
            units=tuple(unit for unit in units if unit.tests or not is_final),
            reached=reached,
            names=self._names,
            is_recorded=self._records,
        )

    def _unit(self, slot: _Slot) -> Unit:
        way = slot.ways[0] if slot.ways else Negation(level=Level.STRUCTURE, edits=())
        return Unit(
            function=slot.site,
            edits=self._sites[slot.site].relative(way.edits),
            checks=slot.checks,
            tests=slot.tests if slot.ways else (),
            level=way.level,
            is_bit=way.is_bit and not slot.is_known and self._is_hidden(slot.site, way),
            is_every=slot.is_every,
        )

    def _is_hidden(self, at: int, way: Negation) -> bool:
        """Whether only the test patch shows the lines that are negated."""
        lines = self._sites[at].file.lines
        return all(lines[start[0] - 1].strip() in self._hidden for start, _, _ in way.edits)


def _sites(
    files: Mapping[str, bytes], functions: Mapping[str, Sequence[str]]
) -> tuple[list[_Site], dict[str, str]]:
    """Returns the functions of the expected tests that can be read, and where each is by its id."""
    read: dict[str, TestFile | None] = {}
    sites: dict[str, _Site] = {}
    locations: dict[str, str] = {}
    for name in dict.fromkeys(name for names in functions.values() for name in names):
        path, _, own = name.partition("::")
        if path not in read:
            read[path] = _test_file(path, files)
        file = read[path]
        place = file.place(own) if file and own else ""
        node = file.node(place) if file and place else None
        if file is None or node is None:
            continue
        locations[name] = location = f"{path}::{place}"
        start, end = first_line(node), node.end_lineno or node.lineno
        function = TestFunction(
            path=path,
            first_line=start,
            num_lines=end - start + 1,
            name=place,
            digest=digest_of(file.lines[start - 1 : end]),
            constants=digest_of([file.constants(node)]),
        )
        sites.setdefault(location, _Site(location, file, node, function))
    return list(sites.values()), locations


def _test_file(path: str, files: Mapping[str, bytes]) -> TestFile | None:
    try:
        return TestFile.read(files[path]) if path.endswith(".py") and path in files else None
    except (SyntaxError, ValueError, RecursionError, LookupError):
        return None  # another Python's syntax, or no text at all
