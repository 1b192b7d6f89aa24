"""The plan of a task's challenge: what the gold patch shows of its tests, found out once.

It says how each test is negated, which tests must be negated together, and which of them do not end
alike every time. Nothing is learned while patches are graded, so that a grade never depends on
what was graded before.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Self

from filelock import FileLock

from coding_gym.grade import Level, TestStatus
from coding_gym.grading.challenge import (
    Draw,
    Negation,
    Statuses,
    Suite,
    Unit,
    draw,
    units_of,
)
from coding_gym.grading.tree import Run
from coding_gym.task import Task
from coding_gym.workspace import Template

_SCHEMA = 2
_LEVELS = tuple(Level)
_MAX_TRIES = 6  # of candidates of one function, beside the last
_NUM_DRAWS = 3
_MAX_DRAWS = 8

RunAll = Callable[[Sequence[Mapping[str, bytes]]], Sequence[Run]]
"""Runs the tests once for each set of changed files, at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is known of a task's tests before any patch is graded.

    Attributes:
        is_calibrated: Whether the gold patch has shown it; if not, it is only read from the source.
        negations: How functions are negated, by place.
        levels: How strongly each expected test is negated; `Level.STRUCTURE` for others.
        units: Places that are negated together.
        excluded: Tests to keep that do not end alike every time, and count for nothing.
        unstable: Tests of the bug that do not end alike every time: one pass of two is enough.
        xfailing: Tests that end as expected failures, which is a pass for them.
        is_paired: Whether two runs at the same time end as one run does.
    """

    is_calibrated: bool = False
    negations: Mapping[str, Negation] = field(default_factory=dict)
    levels: Mapping[str, Level] = field(default_factory=dict)
    units: tuple[Unit, ...] = ()
    excluded: tuple[str, ...] = ()
    unstable: tuple[str, ...] = ()
    xfailing: tuple[str, ...] = ()
    is_paired: bool = True

    @property
    def digest(self) -> str:
        """Names the content of the plan."""
        return hashlib.sha256(self.to_text("").encode()).hexdigest()[:16]

    def level(self, test: str) -> Level:
        """Returns how strongly an expected test is negated."""
        return self.levels.get(test, Level.STRUCTURE)

    def to_text(self, key: str) -> str:
        """Returns the plan as a JSON document.

        Args:
            key: What it was made for, from `plan_key`.
        """
        data: dict[str, Any] = {
            "key": key,
            "is_calibrated": self.is_calibrated,
            "negations": {place: asdict(self.negations[place]) for place in sorted(self.negations)},
            "levels": {test: str(self.levels[test]) for test in sorted(self.levels)},
            "units": sorted(sorted(unit) for unit in self.units if len(unit) > 1),
            "excluded": list(self.excluded),
            "unstable": list(self.unstable),
            "xfailing": list(self.xfailing),
            "is_paired": self.is_paired,
        }
        return json.dumps(data, indent=1) + "\n"

    @classmethod
    def from_text(cls, text: str, key: str) -> Self | None:
        """Reads what `to_text` gave; None for anything else, and for another key."""
        try:
            data = json.loads(text)
            if data["key"] != key:
                return None
            negations = {
                place: Negation(
                    number=int(one["number"]),
                    errors=tuple(map(str, one["errors"])),
                    digest=str(one["digest"]),
                )
                for place, one in data["negations"].items()
            }
            return cls(
                is_calibrated=bool(data["is_calibrated"]),
                negations=negations,
                levels={test: Level(level) for test, level in data["levels"].items()},
                units=units_of([*data["units"], *([place] for place in negations)]),
                excluded=tuple(data["excluded"]),
                unstable=tuple(data["unstable"]),
                xfailing=tuple(data["xfailing"]),
                is_paired=bool(data["is_paired"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def plan_key(task: Task, template: Template) -> str:
    """Names all that a plan depends on."""
    facts = [_SCHEMA, template.key, task.gold_patch, task.test_patch, task.fail_to_pass]
    facts += [task.pass_to_pass, task.runner, task.test_command, task.test_report]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def read_plan(task: Task, suite: Suite) -> Plan:
    """Returns the plan of a task without a gold patch: by syntax, and one unit for each file."""
    negations: dict[str, Negation] = {}
    for place in sorted(frozenset[str]().union(*suite.places.values())):
        for number, candidate in enumerate(suite.candidates(place)):
            if candidate.is_sure:
                negations[place] = _negation(suite, place, number, candidate.errors)
                break
    by_file: dict[str, set[str]] = {}
    for place in negations:
        by_file.setdefault(place.partition("::")[0], set()).add(place)
    return _finished(Plan(negations=negations), task, suite, by_file.values())


def stored_plan(task: Task, template: Template, make: Callable[[], Plan]) -> Plan:
    """Returns a task's plan, made now and kept beside its template if it is the first time."""
    if template.plans is None:
        return make()
    key = plan_key(task, template)
    path = template.plans / f"{key}.json"
    if (plan := _read(path, key)) is not None:
        return plan
    template.plans.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if (plan := _read(path, key)) is None:
            plan = make()
            partial = path.with_suffix(".partial")
            partial.write_text(plan.to_text(key), encoding="utf-8")
            partial.rename(path)
    return plan


def _read(path: Path, key: str) -> Plan | None:
    try:
        return Plan.from_text(path.read_text(encoding="utf-8"), key)
    except (OSError, ValueError):
        return None


def make_plan(task: Task, suite: Suite, first: Run, run_all: RunAll, rng: Random) -> Plan:
    """Returns the plan of a task by runs of its tests with the gold patch.

    Args:
        task: The task.
        suite: Its test files with the gold patch.
        first: A run with the gold patch.
        run_all: Runs its tests with the gold patch.
        rng: Source of what negated tests ask for.
    """
    seen = [first, *run_all([{}, {}, {}])]  # at the same time, which is load
    is_paired = True
    steady, uneven = _divided(task, seen)
    if uneven:
        seen = [first, *(run_all([{}])[0] for _ in range(3))]
        alone, uneven_alone = _divided(task, seen)
        if len(uneven_alone) < len(uneven):  # runs at the same time disturb one another
            steady, uneven, is_paired = alone, uneven_alone, False
    if not steady:
        return Plan()
    maker = _Maker(suite, steady, run_all, rng, is_paired=is_paired)
    maker.choose()
    maker.pair()
    plan = Plan(
        is_calibrated=True,
        negations=maker.negations(),
        excluded=tuple(test for test in uneven if test not in task.fail_to_pass),
        unstable=tuple(test for test in uneven if test in task.fail_to_pass),
        xfailing=tuple(
            test
            for test in task.expected_tests
            if all(one.status(test) is TestStatus.XFAILED for one in seen)
        ),
        is_paired=maker.is_paired,
    )
    refuted = maker.refuted
    finished = _finished(plan, task, suite, maker.together)
    levels = {test: one for test, one in finished.levels.items() if test not in refuted}
    return replace(finished, levels=levels)


def _divided(task: Task, runs: Sequence[Run]) -> tuple[list[str], list[str]]:
    """Expected tests that passed in all of some runs, and those that did in some of them."""
    passed = {
        test: [run.status(test) is TestStatus.PASSED for run in runs]
        for test in task.expected_tests
    }
    steady = [test for test, results in passed.items() if all(results)]
    return steady, [test for test, r in passed.items() if any(r) and test not in steady]


def _finished(plan: Plan, task: Task, suite: Suite, together: Collection[Collection[str]]) -> Plan:
    """Returns a plan with its units, and the levels of all tests that are negated."""
    known = plan.negations.keys()
    shared = [places for places in suite.places.values() if places and places <= known]
    units = units_of([*([place] for place in known), *shared, *together])
    levels: dict[str, Level] = {}
    for test in task.expected_tests:
        places = suite.places.get(test, frozenset())
        if places and places <= known:
            ranks = [
                _LEVELS.index(suite.candidates(place)[plan.negations[place].number].level)
                for place in places
            ]
            levels[test] = _LEVELS[max(ranks)]
    return replace(plan, units=units, levels=levels)


def _negation(suite: Suite, place: str, number: int, errors: Collection[str]) -> Negation:
    return Negation(number=number, errors=tuple(errors), digest=suite.digest(place))


class _Maker:
    """Finds out by runs with the gold patch how tests are negated, and which hang together."""

    def __init__(
        self,
        suite: Suite,
        tests: Sequence[str],
        run_all: RunAll,
        rng: Random,
        *,
        is_paired: bool = True,
    ) -> None:
        self._suite, self._run_all, self._rng = suite, run_all, rng
        self._places = {test: suite.places.get(test, frozenset()) for test in tests}
        self._tests: dict[str, list[str]] = {}  # by place
        for test, places in self._places.items():
            for place in places:
                self._tests.setdefault(place, []).append(test)
        self._numbers = {place: 0 for place in self._tests if suite.candidates(place)}
        self._tries = dict.fromkeys(self._numbers, 1)
        self._best: dict[str, tuple[int, int]] = {}  # failing tests and number, by place
        self._errors = {place: self._candidate_errors(place) for place in self._numbers}
        self._confirmed: dict[str, list[str]] = {}
        self.refuted: set[str] = set()
        self.together: list[frozenset[str]] = []
        self.is_paired = is_paired

    def negations(self) -> dict[str, Negation]:
        """Returns how each function is negated, without those that cannot be."""
        found = {}
        for place, number in self._numbers.items():
            if any(test not in self.refuted for test in self._tests[place]):
                errors = self._confirmed.get(place, self._errors[place])
                found[place] = _negation(self._suite, place, number, errors)
        return found

    def choose(self) -> None:
        """Chooses the strongest negation of each function with which all of its tests fail."""
        open_places = set(self._numbers)
        while open_places:
            (run,) = self._run_negated([frozenset(self._numbers)])
            if not run.has_ended:  # a negated test kept the run from ending
                open_places = {p for p in open_places if self._weaken(p)}
                continue
            open_places = {p for p in open_places if not self._holds(p, run.status)}

    def pair(self) -> None:
        """Finds the tests that depend on each other, by draws as a grade makes them."""
        observed: dict[str, list[tuple[bool, frozenset[str]]]] = {}
        number = _NUM_DRAWS
        for round_number in range(_MAX_DRAWS):
            if round_number >= number:
                break
            drawn = draw(self._units(), self._rng)
            is_clean = self._observe(drawn, observed)
            if not is_clean:
                number = _MAX_DRAWS
            if round_number == _MAX_DRAWS - 3:
                self._join(observed, whole_files=False)
                observed.clear()
        if any(not passed for seen in observed.values() for passed, _ in seen):
            self._join(observed, whole_files=True)

    def _observe(self, drawn: Draw, observed: dict[str, list[tuple[bool, frozenset[str]]]]) -> bool:
        """Makes two runs; returns whether all plain tests passed and all negated ones failed."""
        is_clean = True
        for negated, run in zip(drawn, self._run_negated(drawn), strict=True):
            if not run.has_ended:
                self.is_paired = False
                is_clean = False
                continue
            for test, places in self._places.items():
                has_passed = run.status(test) is TestStatus.PASSED
                if places and places <= negated and places <= self._numbers.keys():
                    if has_passed and test not in self.refuted:
                        self.refuted.add(test)
                        is_clean = False
                elif places.isdisjoint(negated):
                    observed.setdefault(test, []).append((has_passed, negated))
                    is_clean &= has_passed
        return is_clean

    def _join(
        self,
        observed: Mapping[str, Sequence[tuple[bool, frozenset[str]]]],
        *,
        whole_files: bool,
    ) -> None:
        """Puts tests that failed while plain into one unit with what may have made them fail."""
        for test, seen in observed.items():
            failing = [negated for passed, negated in seen if not passed]
            if not failing or not self._places[test]:
                continue
            cleared = frozenset[str]().union(*(negated for passed, negated in seen if passed))
            suspects = frozenset.intersection(*failing) - cleared
            suspects = suspects or frozenset[str]().union(*failing) - cleared
            paths = {place.partition("::")[0] for place in self._places[test]}
            near = {p for p in self._numbers if p.partition("::")[0] in paths}
            chosen = near if whole_files else (suspects & near) or suspects
            self.together.append(self._places[test] | chosen)

    def _units(self) -> tuple[Unit, ...]:
        known = self._numbers.keys()
        shared = [places for places in self._places.values() if places <= known]
        return units_of([*([place] for place in known), *shared, *self.together])

    def _run_negated(self, negated: Sequence[frozenset[str]]) -> Sequence[Run]:
        """Runs the tests with some functions negated, each for another error than before."""
        drawn = {
            place: self._rng.choice(errors) for place, errors in self._errors.items() if errors
        }
        self._drawn = drawn
        negations = {
            place: Negation(number=number, errors=(drawn[place],) if place in drawn else ())
            for place, number in self._numbers.items()
        }
        files = [self._suite.rewritten(negations, one, self._rng) for one in negated]
        if self.is_paired:
            return self._run_all(files)
        return [self._run_all([one])[0] for one in files]

    def _holds(self, place: str, statuses: Statuses) -> bool:
        """Whether a negation is settled; if not, the next one is tried."""
        failing = [t for t in self._tests[place] if statuses(t) is not TestStatus.PASSED]
        number, name = self._numbers[place], self._drawn.get(place)
        if len(failing) == len(self._tests[place]):
            if name is not None:
                self._confirmed.setdefault(place, []).append(name)
                self._errors[place] = (name,)
            return True
        if name is not None:
            self._errors[place] = tuple(e for e in self._errors[place] if e != name)
            if self._errors[place]:
                return False
        if len(failing) > self._best.get(place, (0, 0))[0]:
            self._best[place] = len(failing), number
        if self._weaken(place):
            return False
        self._numbers[place] = self._best.get(place, (0, number))[1]
        if place in self._best:
            self._errors[place] = self._candidate_errors(place)
        passing = (t for t in self._tests[place] if t not in failing)
        self.refuted.update(passing)
        return True

    def _weaken(self, place: str) -> bool:
        """Goes on to the next negation of a function; returns whether there is one."""
        last = len(self._suite.candidates(place)) - 1
        if self._numbers[place] == last:
            return False
        self._tries[place] += 1
        following = self._numbers[place] + 1
        self._numbers[place] = last if self._tries[place] > _MAX_TRIES else following
        self._errors[place] = self._candidate_errors(place)
        return True

    def _candidate_errors(self, place: str) -> tuple[str, ...]:
        return self._suite.candidates(place)[self._numbers[place]].errors
