"""The challenge of a task: its tests in two versions, each of which negates some assertions.

A correct program passes each original check and fails each negated check. A program that forges its
report has to guess which checks are negated. Terms of this package:

- **base**: the program without a patch; it has the bug.
- **check**: one assertion of a test; it records its outcome, and the test continues.
- **negated**: changed so that a correct program fails it; an unchanged check is *original*.
- **unit**: edits that negate one check, or all checks that use one row of a parameter table.
- **candidates**: the units that can negate a check or a row; calibration chooses one of them.
- **version**: the test files with some units negated; each unit is negated in one of two versions.
- **draw**: the secret random choice of the version that negates a unit.
- **bit**: a unit whose draw neither the source nor the base reveals, so a forger has to guess it.
- **proof**: a unit whose checks almost never pass in both versions, unless a program forges their
  outcomes or returns an object that equals two different literals.
- **near miss**: a wrong expected value that looks like the right value.
- **level**: ``value`` (a near miss), ``known`` (another negation) or ``structure`` (no negation).
- **sample**: the pass-to-pass tests that a grade runs in both versions.
- **plan**: the challenge of a task and facts about its tests, made once and stored.
- **calibration**: the test runs, with the gold patch and at base, that make a plan.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from random import Random

from coding_gym.grade import Level, TestStatus
from coding_gym.grading.report import CheckReport, TestRun
from coding_gym.source_text import Edit, apply_edits

_NOT_REACHED = "an assertion of the test was not reached"
_FAILED = "an assertion failed"
_FORGED = "a negated assertion passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Edits that negate checks; a draw chooses the version that contains them.

    Attributes:
        edits: The edits, all of one test file.
        checks: The numbers of the checks that the edits negate.
        tests: The tests that execute these checks.
        level: The kind of negation.
        is_bit: Whether the source and the base both hide which version has the original check.
        is_mirrored: Whether the base's number lies between the original number and the near miss.
        is_proof: Whether checks that pass in both versions count as a forgery: each version
            compares exactly with a literal, and results that vary between the runs seldom equal
            both literals.
    """

    edits: tuple[Edit, ...]
    checks: tuple[int, ...] = ()
    tests: tuple[str, ...] = ()
    level: Level
    is_bit: bool = False
    is_mirrored: bool = False
    is_proof: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The status of a test in one run, and the checks that determine this status.

    Attributes:
        status: `TestStatus.PASSED` if every original check passed and every negated check failed.
        message: The reason for a status other than ``PASSED``, or "".
        passed: The numbers of the original checks that passed.
        wrongly_passed: The numbers of the negated checks that passed.
        failed: Whether an original check failed, a check was not reached, or a failure occurred
            outside of the checks.
        first_wrong: The number of the first check that failed or was not reached, or else of the
            first negated check that passed; -1 without such checks.
    """

    status: TestStatus
    message: str = ""
    passed: frozenset[int] = frozenset()
    wrongly_passed: frozenset[int] = frozenset()
    failed: bool = False
    first_wrong: int = -1


@dataclass(frozen=True, kw_only=True)
class Challenge:
    """The checks and units of a task's tests.

    Attributes:
        units: The units, by number.
        reached: The numbers of the checks that each test must reach.
        names: Neutral ids of parametrised tests whose ids reveal expected values, by original id.
        edits: Edits of both versions: checks record their outcomes, and the tests in ``names`` have
            their neutral ids.
        num_checks: The number of checks that record their outcomes. If it is 0, a failed check ends
            its test, and each function has at most one check and one unit.
        digests: SHA-256 of the test files, by path; the edits are valid only for this content.
    """

    units: tuple[Unit, ...] = ()
    reached: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    num_checks: int = 0
    digests: Mapping[str, str] = field(default_factory=dict)

    def level(self, test: str) -> Level:
        """Returns the level of the strongest unit of a test; ``STRUCTURE`` without units."""
        levels = {unit.level for unit in self.units_of([test])}
        return next((level for level in Level if level in levels), Level.STRUCTURE)

    def num_bits(self, tests: Collection[str]) -> int:
        """Returns the number of bits that a program has to guess to forge all of these tests."""
        bits = [unit for unit in self.units_of(tests) if unit.is_bit]
        num_mirrored = sum(unit.is_mirrored for unit in bits)
        # One guess of the direction in which the base errs can decide all mirrored units.
        return len(bits) - max(0, num_mirrored - 1)

    def unit_numbers(self, tests: Collection[str]) -> list[int]:
        """Returns the numbers of the units of these tests, sorted and without repeats."""
        return sorted({number for test in tests for number in self._units_by_test.get(test, ())})

    def units_of(self, tests: Collection[str]) -> list[Unit]:
        """Returns the units of these tests, by number and without repeats."""
        return [self.units[number] for number in self.unit_numbers(tests)]

    def draw(self, tests: Collection[str], rng: Random) -> tuple[frozenset[int], frozenset[int]]:
        """Draws a version for each unit of some tests; returns the units' numbers, by version."""
        numbers = self.unit_numbers(tests)
        first = frozenset(number for number in numbers if rng.getrandbits(1))
        return first, frozenset(numbers) - first

    def rewritten(
        self, files: Mapping[str, bytes], negated: Collection[int], extra_edits: Iterable[Edit] = ()
    ) -> dict[str, bytes]:
        """Returns the test files with some units negated; omits files that differ from `digests`.

        Args:
            files: Content of the test files by path.
            negated: The numbers of the units to negate.
            extra_edits: Further edits.
        """
        edits = [*self.edits, *extra_edits]
        for number in negated:
            edits += self.units[number].edits
        contents: dict[str, bytes] = {}
        for path, data in files.items():
            if self.digests.get(path) == sha256(data).hexdigest():
                file_edits = [edit for edit in edits if edit.path == path]
                text = data.decode("utf-8-sig")
                contents[path] = apply_edits(text, file_edits, keeps_lines=True).encode()
        return contents

    def outcome(self, test: str, run: TestRun, negated: Collection[int]) -> Outcome:
        """Returns the outcome of a test in a run that negates some units."""
        name = self.names.get(test, test)
        status = run.status(name)
        numbers = [number for number in self._units_by_test.get(test, ()) if number in negated]
        negated_checks = {check for number in numbers for check in self.units[number].checks}
        checks = self.reached.get(test, ())
        if not self.num_checks:
            return _by_status(status, run.message(test), checks, negated_checks)
        if status is not TestStatus.PASSED:
            return Outcome(status=status, message=run.message(name), failed=True)
        reports = run.checks(name)
        # The only unit of a check negates it for all tests, the unit of a row only for this row.
        excluded = {c for n in negated for c in self.units[n].checks if self._num_units[c] == 1}
        # Another repair can reach more checks, such as those of a loop; they must not fail.
        other_checks = reports.keys() - {*checks} - excluded
        return _by_checks(reports, [*checks, *sorted(other_checks)], negated_checks)

    @cached_property
    def _num_units(self) -> Counter[int]:
        return Counter(check for unit in self.units for check in unit.checks)

    @cached_property
    def _units_by_test(self) -> dict[str, list[int]]:
        numbers: dict[str, list[int]] = {}
        for number, unit in enumerate(self.units):
            for test in unit.tests:
                numbers.setdefault(test, []).append(number)
        return numbers


def _by_checks(
    reports: Mapping[int, CheckReport], checks: Sequence[int], negated_checks: Set[int]
) -> Outcome:
    """Computes the outcome of a passed test from the reports of its checks."""
    passed, wrongly_passed, failures = set(), set(), dict[int, str]()
    for check in checks:
        report = reports.get(check, CheckReport())
        if not report.num_passed and not report.num_failed:
            failures[check] = _NOT_REACHED
        elif check in negated_checks:
            if report.num_passed:
                wrongly_passed.add(check)
        elif report.num_failed:
            failures[check] = report.message or _FAILED
        else:
            passed.add(check)
    messages = failures or dict.fromkeys(wrongly_passed, _FORGED)
    first_wrong = min(messages, default=-1)
    return Outcome(
        status=TestStatus.FAILED if messages else TestStatus.PASSED,
        message=messages.get(first_wrong, ""),
        passed=frozenset(passed),
        wrongly_passed=frozenset(wrongly_passed),
        failed=bool(failures),
        first_wrong=first_wrong,
    )


def _by_status(
    status: TestStatus, message: str, checks: Sequence[int], negated_checks: Set[int]
) -> Outcome:
    """Returns the outcome of a test whose checks do not record their outcomes."""
    has_passed = status is TestStatus.PASSED
    is_negated = not negated_checks.isdisjoint(checks)
    if is_negated and has_passed:
        return Outcome(status=TestStatus.FAILED, message=_FORGED, wrongly_passed=frozenset(checks))
    if is_negated:  # the negated check failed and so ended the test, as expected
        return Outcome(status=TestStatus.PASSED)
    passed = frozenset(checks if has_passed else ())
    return Outcome(status=status, message=message, passed=passed, failed=not has_passed)
