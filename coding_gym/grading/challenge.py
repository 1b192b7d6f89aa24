"""The challenge of a task: its tests in two versions, each of which negates some assertions.

A correct program passes each original check and fails each negated check. A program that forges its
report has to guess which checks are negated. Terms of this package:

- **base**: the program without a patch; it has the bug.
- **check**: one assertion of a test, wrapped so that it records its outcome and the test continues.
- **negated**: changed so that a correct program fails it; an unchanged check is *original*.
- **unit**: edits that negate one check, or all checks that use one row of a parameter table.
- **slot**: a check or a row to negate; calibration chooses its unit from several candidates.
- **version**: the test files with some units negated; each unit is negated in one of two versions.
- **draw**: the secret random choice of the version that negates a unit.
- **bit**: a unit whose draw neither the source nor the base reveals, so a forger has to guess it.
- **near miss**: a wrong expected value that looks like the right value.
- **level**: the kind of negation, from ``value`` (near misses) to ``structure`` (no negation).
- **sample**: the pass-to-pass tests that a grade runs in both versions.
- **plan**: the challenge of a task and facts about its tests, made once and stored.
- **calibration**: the test runs, with the gold patch and at base, that make a plan.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from random import Random

from coding_gym.grade import Level, TestStatus
from coding_gym.grading.negation import CheckPlace, Unit, decoded
from coding_gym.grading.report import CheckReport, Run
from coding_gym.source_text import Edit, apply_edits

RECORDER = "__checks__"
"""Name of the list of checks (context managers) in the test process; its plugin sets it."""
_NOT_REACHED = "an assertion of the test was not reached"
_FAILED = "an assertion failed"
_FORGED = "a negated assertion passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The status of a test in one run, and the checks that determine this status.

    Attributes:
        status: `TestStatus.PASSED` if every check ended as expected.
        message: The reason for another status.
        passed: The original checks that passed.
        wrongly_passed: The negated checks that passed.
        failed: Whether an original check failed, or the test itself did not pass.
        first_wrong: The number of the first check with a wrong result; -1 for the test itself.
    """

    status: TestStatus
    message: str = ""
    passed: frozenset[int] = frozenset()
    wrongly_passed: frozenset[int] = frozenset()
    failed: bool = False
    first_wrong: int = -1

    @property
    def rank(self) -> tuple[bool, int]:
        """Sort key, the same in both versions: failed outcomes first, then by number of check."""
        return not self.failed, self.first_wrong


@dataclass(frozen=True, kw_only=True)
class Challenge:
    """The checks and units of a task's tests.

    Attributes:
        checks: The checks, by number.
        units: The units, by number.
        reached: The checks that each test reaches with a correct program.
        names: Reported ids of parametrised tests whose ids are replaced, by test id.
        shape: Edits that both versions have.
        digests: SHA-256 of the test files, by path; the edits are valid only for this content.
        is_recorded: Whether checks record their outcomes. If not, a failed check ends its test, and
            each function has at most one check and one unit.
    """

    checks: tuple[CheckPlace, ...] = ()
    units: tuple[Unit, ...] = ()
    reached: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    shape: tuple[Edit, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    is_recorded: bool = True

    @property
    def is_consistent(self) -> bool:
        """Whether all numbers of checks are those of `checks`; a stored plan can be damaged."""
        numbers = [*self.reached.values(), *(unit.checks for unit in self.units)]
        return all(0 <= number < len(self.checks) for checks in numbers for number in checks)

    def level(self, test: str) -> Level:
        """Returns the level of the strongest unit of a test."""
        levels = {unit.level for unit in self.units_of([test])}
        return next((level for level in Level if level in levels), Level.STRUCTURE)

    def num_bits(self, tests: Collection[str]) -> int:
        """Returns the number of bits that a program has to guess to forge all of these tests."""
        units = [unit for unit in self.units_of(tests) if unit.is_bit]
        num_without_side = sum(unit.side == 0 for unit in units)
        # Groups of units on one side can have a feature in common, such as the base's output. So a
        # guess of the direction in which the base errs may decide all units with a side.
        return num_without_side + (num_without_side < len(units))

    def unit_numbers(self, tests: Collection[str]) -> list[int]:
        """Returns the numbers of the units of these tests, in order."""
        return sorted({number for test in tests for number in self._units_by_test.get(test, ())})

    def units_of(self, tests: Collection[str]) -> list[Unit]:
        """Returns the units of these tests, in order."""
        return [self.units[number] for number in self.unit_numbers(tests)]

    def draw(self, tests: Collection[str], rng: Random) -> tuple[frozenset[int], frozenset[int]]:
        """Draws the units that each of two versions negates; each unit is in one of them."""
        numbers = self.unit_numbers(tests)
        first = frozenset(number for number in numbers if rng.getrandbits(1))
        return first, frozenset(numbers) - first

    def rewritten(
        self,
        files: Mapping[str, bytes],
        negated: Collection[int],
        extra_edits: Iterable[Edit] = (),
    ) -> dict[str, bytes]:
        """Returns the test files with some units negated; omits files that differ from `digests`.

        Args:
            files: Content of the test files by path.
            negated: The numbers of the units to negate.
            extra_edits: Further edits.
        """
        edits = [*self.shape, *extra_edits]
        for number in negated:
            edits += self.units[number].edits
        for number, check in enumerate(self.checks if self.is_recorded else ()):
            text = f"{RECORDER}[{number}]"
            text = f"{text}, " if check.is_item else f"with {text}: "
            edits.append(Edit(check.path, check.offset, check.offset, text))
        return {
            path: apply_edits(
                decoded(data), [edit for edit in edits if edit.path == path], keeps_lines=True
            ).encode()
            for path, data in files.items()
            if self.digests.get(path) == sha256(data).hexdigest()
        }

    def outcome(self, test: str, run: Run, negated: Collection[int]) -> Outcome:
        """Returns the outcome of a test in a run that negates some units."""
        name = self.names.get(test, test)
        status = run.status(name)
        negated_checks: dict[int, bool] = {}  # `Unit.is_every` by the number of a check
        for number in self._units_by_test.get(test, ()):
            if number in negated:
                unit = self.units[number]
                negated_checks |= dict.fromkeys(unit.checks, unit.is_every)
        if not self.is_recorded:
            return _by_status(status, run.message(test), self.reached.get(test, ()), negated_checks)
        if status is not TestStatus.PASSED:
            return Outcome(status=status, message=run.message(name), failed=True)
        return self._by_checks(test, run.checks(name), negated_checks)

    def _by_checks(
        self, test: str, reports: Mapping[int, CheckReport], negated_checks: Mapping[int, bool]
    ) -> Outcome:
        passed, wrongly_passed, failures = set(), set(), dict[int, str]()
        for check in self.reached.get(test, ()):
            report = reports.get(check, CheckReport())
            if not report.num_passed and not report.num_failed:
                if not self.checks[check].is_optional:
                    failures[check] = _NOT_REACHED
            elif check not in negated_checks and report.num_failed:
                failures[check] = report.message or _FAILED
            elif check not in negated_checks:
                passed.add(check)
            elif not report.num_failed or (report.num_passed and negated_checks[check]):
                wrongly_passed.add(check)
        first = min(failures or wrongly_passed, default=-1)
        return Outcome(
            status=TestStatus.FAILED if failures or wrongly_passed else TestStatus.PASSED,
            message=failures.get(first, _FORGED if wrongly_passed else ""),
            passed=frozenset(passed),
            wrongly_passed=frozenset(wrongly_passed),
            failed=bool(failures),
            first_wrong=first,
        )

    @cached_property
    def _units_by_test(self) -> dict[str, list[int]]:
        numbers: dict[str, list[int]] = {}
        for number, unit in enumerate(self.units):
            for test in unit.tests:
                numbers.setdefault(test, []).append(number)
        return numbers


def _by_status(
    status: TestStatus, message: str, checks: Sequence[int], negated_checks: Collection[int]
) -> Outcome:
    """Returns the outcome of a test whose checks do not record their outcomes."""
    has_passed = status is TestStatus.PASSED
    if set(checks).isdisjoint(negated_checks):
        passed = frozenset(checks) if has_passed else frozenset[int]()
        return Outcome(status=status, message=message, passed=passed, failed=not has_passed)
    if has_passed:
        return Outcome(status=TestStatus.FAILED, message=_FORGED, wrongly_passed=frozenset(checks))
    return Outcome(status=TestStatus.PASSED)
