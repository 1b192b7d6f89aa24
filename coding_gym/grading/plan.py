"""The plan of a task's challenge: what the gold patch shows of its tests, found out once.

It says how each test is negated, which tests must be negated together, and which of them do not end
alike every time. Nothing is learned while patches are graded, so that a grade never depends on
what was graded before.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from random import Random

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from coding_gym.grade import Level, TestStatus
from coding_gym.grading import negation, wrong_values
from coding_gym.grading.challenge import Suite, Unit, draw, units_of
from coding_gym.grading.negation import Negation
from coding_gym.grading.tree import Run
from coding_gym.task import Task
from coding_gym.workspace import Template

_SCHEMA = 3
_LEVELS = tuple(Level)
_NUM_DRAWS, _NUM_MORE, _NUM_TRIES = 3, 2, 3
_NUM_TABLE_DRAWS = 6  # of a table whose values keep its file from being imported

RunAll = Callable[[Sequence[Mapping[str, bytes]]], Sequence[Run]]
"""Runs the tests once for each set of changed files, at the same time."""

# The cheapest way first: without explained assertions, two runs at the same time.
_WAYS = ((True, True), (False, True), (False, False))
_Seen = tuple[Unit, set[str]]  # the locations that a run negated, and the tests that passed


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is known of a task's tests before any patch is graded.

    Attributes:
        is_calibrated: Whether the gold patch has shown it; if not, it is only read from the source.
        negations: How functions are negated, by location.
        levels: How strongly each expected test is negated; `Level.STRUCTURE` for others.
        together: Locations that are negated together; others are so by themselves.
        excluded: Tests to keep that do not end alike every time, and count for nothing.
        unstable: Tests of the bug that do not end alike every time: one pass of two is enough.
        xfailing: Tests that end as expected failures, which is a pass for them.
        is_plain: Whether runs end as usual where pytest does not explain failed assertions.
        is_paired: Whether two runs at the same time end as one run does.
    """

    is_calibrated: bool = False
    negations: Mapping[str, Negation] = field(default_factory=dict)
    levels: Mapping[str, Level] = field(default_factory=dict)
    together: tuple[tuple[str, ...], ...] = ()
    excluded: tuple[str, ...] = ()
    unstable: tuple[str, ...] = ()
    xfailing: tuple[str, ...] = ()
    is_plain: bool = False
    is_paired: bool = True

    @property
    def digest(self) -> str:
        """Names the content of the plan."""
        return hashlib.sha256(self.to_text("").encode()).hexdigest()[:16]

    @property
    def units(self) -> tuple[Unit, ...]:
        """Returns all negated locations, in units."""
        return units_of([*self.together, *([location] for location in self.negations)])

    def level(self, test: str) -> Level:
        """Returns how strongly an expected test is negated."""
        return self.levels.get(test, Level.STRUCTURE)

    def counts(self, tests: Collection[str]) -> dict[str, int]:
        """Returns how many of some tests are negated at each level, the strongest first."""
        found = Counter(self.level(test) for test in tests)
        return {str(level): found[level] for level in Level if level in found}

    def to_text(self, key: str) -> str:
        """Returns the plan as a JSON document.

        Args:
            key: What it was made for, from `plan_key`.
        """
        return _STORED.dump_json((key, self)).decode() + "\n"

    @classmethod
    def from_text(cls, text: str, key: str = "") -> "Plan | None":
        """Reads what `to_text` gave; None for anything else, and for another key than ``key``."""
        try:
            found, plan = _STORED.validate_json(text)
        except ValidationError:
            return None
        return plan if key in ("", found) else None


_STORED = TypeAdapter(tuple[str, Plan])


def plan_key(task: Task, template: Template) -> str:
    """Names what a plan is made from: base, patches, tests, environment and our own negations.

    It is the same on every machine: a plan that was made elsewhere may come with a task.
    """
    facts = [_SCHEMA, _negation_digest(), template.base_commit, task.gold_patch, task.test_patch]
    facts += [task.fail_to_pass, task.pass_to_pass, task.runner, task.test_command]
    facts += [task.test_report, task.interpreter, task.image, task.install_commands]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


@cache
def _negation_digest() -> str:
    sources = b"".join(Path(str(one.__file__)).read_bytes() for one in (negation, wrong_values))
    return hashlib.sha256(sources).hexdigest()


def read_plan(task: Task, suite: Suite) -> Plan:
    """Returns the plan of a task without a gold patch: by syntax, and one unit for each file."""
    negations: dict[str, Negation] = {}
    for location in sorted(frozenset[str]().union(*suite.locations.values())):
        for number in suite.usable(location):
            if suite.candidates(location)[number].is_sure:
                negations[location] = Negation(number=number, digest=suite.digest(location))
                break
    by_file: dict[str, set[str]] = {}
    for location in negations:
        by_file.setdefault(location.partition("::")[0], set()).add(location)
    return _finished(Plan(negations=negations), task, suite, by_file.values())


def stored_plan(task: Task, template: Template, make: Callable[[], Plan]) -> Plan:
    """Returns the plan that comes with a task, or one that is kept beside its template.

    A plan that does not fit the task is ignored; the first call of all makes one and keeps it.
    """
    key = plan_key(task, template)
    if (plan := Plan.from_text(task.grading_plan, key)) is not None:
        return plan
    return _kept(template, f"{template.key}-{key}", key, lambda: (make(), True))


def shared_plan(
    task: Task, template: Template, tested: str, make: Callable[[Task, Random], tuple[Plan, bool]]
) -> Plan:
    """Returns the plan that a task shares with all that end as the same tree, tested alike.

    Bugs of one project are such tasks: repaired, they are the project again. The environment is
    part of it by its content: its commands run in the task's own tree, which its author wrote.

    Args:
        task: The task.
        template: Its template.
        tested: Names the repaired tree, from `TestTree.name`.
        make: Makes the plan, with a source of draws, of a task whose expected tests are all tests
            of the bug; and says whether others may have it: a run that did not end, as under load,
            makes it weaker than it need be.
    """
    tests = tuple(sorted(task.expected_tests))
    facts = [_SCHEMA, _negation_digest(), tested, template.environment_key, tests, task.runner]
    facts += [task.test_command, task.test_report, task.repo]
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
    of_bug = replace(task, fail_to_pass=tests, pass_to_pass=())
    # The same draws wherever it is made; which tests a run negates is drawn at every grade.
    draws = Random(key)  # noqa: S311 - no secret
    plan = _kept(template, f"shared-{key}", key, partial(make, of_bug, draws))
    bug = {*task.fail_to_pass}
    return replace(
        plan,
        excluded=tuple(test for test in plan.unstable if test not in bug),
        unstable=tuple(test for test in plan.unstable if test in bug),
    )


def _kept(template: Template, name: str, key: str, make: Callable[[], tuple[Plan, bool]]) -> Plan:
    """Returns the plan that is kept under a name; else makes one, and keeps it if it says so."""
    if template.plans is None:
        return make()[0]
    path = template.plans / f"{name}.json"
    if (plan := _read(path, key)) is not None:
        return plan
    template.plans.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if (plan := _read(path, key)) is None:
            plan, is_kept = make()
            if is_kept:
                unfinished = path.with_suffix(".partial")
                unfinished.write_text(plan.to_text(key), encoding="utf-8")
                unfinished.rename(path)
    return plan


def _read(path: Path, key: str) -> Plan | None:
    try:
        return Plan.from_text(path.read_text(encoding="utf-8"), key)
    except (OSError, ValueError):
        return None


def make_plan(
    task: Task, suite: Suite, first: Run, run_all: Callable[..., Sequence[Run]], rng: Random
) -> Plan:
    """Returns the plan of a task by runs of its tests with the gold patch.

    Args:
        task: The task.
        suite: Its test files with the gold patch.
        first: A run with the gold patch.
        run_all: A `RunAll` that takes ``is_plain`` as well.
        rng: Source of what negated tests ask for.
    """
    found = []
    for is_plain, is_paired in _WAYS:
        run: RunAll = partial(run_all, is_plain=is_plain)
        # Three at the same time are load.
        more = run([{}, {}, {}]) if is_paired else [run([{}])[0] for _ in range(3)]
        found.append(_Way(task, [first, *more], run, is_plain=is_plain, is_paired=is_paired))
        if not found[-1].uneven:
            break
    way = min(found, key=lambda one: len(one.uneven))
    if not way.steady:
        return Plan()
    maker = _Maker(suite, way.steady, way.run, rng, is_paired=way.is_paired)
    maker.choose()
    maker.pair()
    plan = Plan(
        is_calibrated=True,
        negations=maker.negations(),
        excluded=tuple(test for test in way.uneven if test not in task.fail_to_pass),
        unstable=tuple(test for test in way.uneven if test in task.fail_to_pass),
        xfailing=tuple(
            test
            for test in task.expected_tests
            if all(one.status(test) is TestStatus.XFAILED for one in way.seen)
        ),
        is_plain=way.is_plain,
        is_paired=maker.is_paired,
    )
    return _finished(plan, task, suite, maker.together, refuted=maker.refuted)


class _Way:
    """How tests can be run, and how the expected ones ended so with the gold patch.

    Attributes:
        steady: Those that passed in all runs.
        uneven: Those that passed in some of them.
    """

    def __init__(
        self, task: Task, seen: Sequence[Run], run: RunAll, *, is_plain: bool, is_paired: bool
    ) -> None:
        self.seen, self.run, self.is_plain, self.is_paired = seen, run, is_plain, is_paired
        passed = {
            test: [run.status(test) is TestStatus.PASSED for run in seen]
            for test in task.expected_tests
        }
        self.steady = [test for test, results in passed.items() if all(results)]
        self.uneven = [t for t, r in passed.items() if any(r) and t not in self.steady]


def _finished(
    plan: Plan,
    task: Task,
    suite: Suite,
    together: Collection[Collection[str]],
    *,
    refuted: Collection[str] = (),
) -> Plan:
    """Returns a plan with its units, and the levels of all tests that are negated."""
    known = plan.negations.keys()
    shared = [own for own in suite.locations.values() if len(own) > 1 and own <= known]
    called = [unit & known for unit in suite.callers() if len(unit & known) > 1]
    units = sorted(tuple(sorted(unit)) for unit in units_of([*shared, *called, *together]))
    levels: dict[str, Level] = {}
    for test in task.expected_tests:
        locations = suite.locations.get(test, frozenset())
        if locations and locations <= known and test not in refuted:
            found = (suite.candidates(p)[plan.negations[p].number].level for p in locations)
            levels[test] = max(found, key=_LEVELS.index)
    return replace(plan, together=tuple(units), levels=levels)


class _Maker:
    """Finds out by runs with the gold patch how tests are negated, and which hang together.

    Attributes:
        refuted: Tests that no negation of their functions makes fail.
        together: Locations that are negated together.
        is_paired: Whether two runs at the same time end as one run does.
    """

    def __init__(
        self, suite: Suite, tests: Sequence[str], run_all: RunAll, rng: Random, *, is_paired: bool
    ) -> None:
        self._suite, self._run_all, self._rng = suite, run_all, rng
        self._locations = {test: suite.locations.get(test, frozenset()) for test in tests}
        self._tests: dict[str, list[str]] = {}  # by location
        for test, locations in self._locations.items():
            for location in locations:
                self._tests.setdefault(location, []).append(test)
        usable = {location: suite.usable(location) for location in self._tests}
        self._left = {location: list(numbers) for location, numbers in usable.items() if numbers}
        self._numbers = {location: numbers.pop(0) for location, numbers in self._left.items()}
        self._seeds: dict[str, list[int]] = {location: [] for location in self._numbers}
        self._drawn: dict[str, int] = {}
        self.refuted: set[str] = set()
        self.together: list[frozenset[str]] = []
        self._callers = suite.callers()
        self.is_paired = is_paired

    def negations(self) -> dict[str, Negation]:
        """Returns how each function is negated, without those that cannot be."""
        return {
            location: Negation(
                number=number,
                seeds=() if self._is_sure(location) else tuple(self._seeds[location]),
                digest=self._suite.digest(location),
            )
            for location, number in self._numbers.items()
            if not self.refuted.issuperset(self._tests[location])
        }

    def choose(self) -> None:
        """Chooses the strongest negation of each function with which all of its tests fail."""
        waiting, tries = set(self._numbers), Counter[str]()
        spared: set[str] = set()  # tables that are left as they are for one run
        while waiting:
            asked = waiting - spared
            (run,) = self._run_negated([frozenset(self._numbers) - spared], asked)
            # A run that does not end, or in which a test writes into its own file, is the fault of
            # one that is asked something odd, if any.
            is_sound = run.has_ended and not run.forgery
            odd = set() if is_sound else {p for p in asked if not self._is_sure(p)}
            unread = set() if odd else self._unread(run, asked) & asked
            tables = sorted(filter(self._is_table, unread))
            spared = {*self._rng.sample(tables, len(tables) // 2)}
            tries.update(tables)
            unread -= {location for location in tables if tries[location] > _NUM_TABLE_DRAWS}
            for location in sorted((odd or asked) - unread):
                passed = [t for t in self._tests[location] if run.status(t) is TestStatus.PASSED]
                is_seen = is_sound and tries[location] <= _NUM_TABLE_DRAWS
                if is_seen and not passed:
                    self._seeds[location].append(self._drawn[location])
                elif self._left[location]:  # also where a negated test kept the run from ending
                    self._numbers[location] = self._left[location].pop(0)
                    del tries[location]
                    continue
                else:
                    self.refuted.update(passed if is_seen else self._tests[location])
                    if not is_seen:  # no draw is known that does no harm to other tests
                        del self._numbers[location]
                waiting.remove(location)

    def pair(self) -> None:
        """Finds the tests that depend on each other, by draws as a grade makes them."""
        seen = self._draws(_NUM_DRAWS)
        if self._is_clean(seen):
            return
        self._join(seen + self._draws(_NUM_MORE), whole_files=False)
        for _ in range(_NUM_TRIES):  # until as many draws show nothing
            seen = self._draws(_NUM_DRAWS)
            if self._is_clean(seen):
                return
            self._join(seen, whole_files=True)

    def _is_clean(self, seen: Sequence[_Seen]) -> bool:
        """Whether some draws were all played, and no test failed while plain."""
        played = len(seen) == 2 * _NUM_DRAWS
        return played and not any(self._failing(test, seen) for test in self._locations)

    def _draws(self, number: int) -> list[_Seen]:
        """Makes the two runs of some draws, and records what fails although it is negated."""
        seen: list[_Seen] = []
        for _ in range(number):
            drawn = draw(self._units(), self._rng)
            for negated, run in zip(drawn, self._run_negated(drawn, self._numbers), strict=True):
                if not run.has_ended:
                    self.is_paired = False
                if not run.has_ended or run.forgery:
                    continue
                passed = {t for t in self._locations if run.status(t) is TestStatus.PASSED}
                unread = self._unread(run, negated)
                passed |= {test for location in unread for test in self._tests[location]}
                for location in negated - unread:
                    spared = passed.intersection(self._tests[location]) - self.refuted
                    if not spared:
                        self._seeds[location].append(self._drawn[location])
                    elif self._is_sure(location):
                        self.refuted |= spared
                seen.append((negated, passed))
        return seen

    def _is_table(self, location: str) -> bool:
        return self._suite.candidates(location)[self._numbers[location]].table is not None

    def _unread(self, run: Run, negated: Collection[str]) -> set[str]:
        """The locations of files that a table, asked something odd, kept from being imported."""
        files: dict[str, list[str]] = {}
        for location in self._tests:
            files.setdefault(location.partition("::")[0], []).append(location)
        found: set[str] = set()
        for locations in files.values():
            if any(one in negated and self._is_table(one) for one in locations):
                tests = {test for one in locations for test in self._tests[one]}
                if all(run.status(test) is TestStatus.MISSING for test in tests):
                    found.update(locations)
        return found

    def _failing(self, test: str, seen: Sequence[_Seen]) -> list[Unit]:
        """What was negated in the runs in which a test was plain, and failed."""
        own = self._locations[test]
        return [negated for negated, passed in seen if not own & negated and test not in passed]

    def _join(self, seen: Sequence[_Seen], *, whole_files: bool) -> None:
        """Puts tests that failed while plain into one unit with what may have made them fail."""
        for test, own in self._locations.items():
            failing = self._failing(test, seen)
            if not failing or not own:
                continue
            plain = [negated for negated, passed in seen if not own & negated and test in passed]
            cleared = frozenset[str]().union(*plain)
            suspects = frozenset.intersection(*failing) - cleared
            suspects = suspects or frozenset[str]().union(*failing) - cleared
            paths = {location.partition("::")[0] for location in own}
            near = {p for p in self._numbers if p.partition("::")[0] in paths}
            chosen = near if whole_files else (suspects & near) or suspects
            self.together.append(own | chosen)

    def _units(self) -> tuple[Unit, ...]:
        known = self._numbers.keys()
        shared = [own for own in self._locations.values() if own <= known]
        called = [unit & known for unit in self._callers]
        return units_of([*([location] for location in known), *shared, *called, *self.together])

    def _is_sure(self, location: str) -> bool:
        return self._suite.candidates(location)[self._numbers[location]].is_sure

    def _run_negated(
        self, negated: Sequence[frozenset[str]], drawn: Collection[str]
    ) -> Sequence[Run]:
        """Runs the tests with some functions negated, some of them by a new draw."""
        self._drawn = {location: self._rng.getrandbits(32) for location in sorted(drawn)}
        seeds = {location: known[:1] for location, known in self._seeds.items()}
        seeds |= {location: [seed] for location, seed in self._drawn.items()}
        negations = {
            location: Negation(number=number, seeds=tuple(seeds[location]))
            for location, number in self._numbers.items()
        }
        files = [self._suite.rewritten(negations, one, self._rng) for one in negated]
        if self.is_paired:
            return self._run_all(files)
        return [self._run_all([one])[0] for one in files]
