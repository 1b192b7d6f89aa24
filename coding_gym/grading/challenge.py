"""The challenge: test files in two opposite versions, and what a correct program reports of them.

A *check* is an assertion that records its outcome and lets its test go on. A *unit* is a negation
that is drawn on its own; it makes some checks fail in some tests. The two versions of the test
files negate opposite units. A correct program passes each check where it is original and fails it
where it is negated, so a program that reports what it likes has to guess every draw.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random

from coding_gym.grade import Level, TestStatus
from coding_gym.grading.negation import TestFile, applied, decoded, lines_of
from coding_gym.grading.report import CheckReport, Run
from coding_gym.grading.wrong_values import Edit, Place

RECORDER = "__checks__"
"""A list of context managers, one for each check, that the reporter in the test process binds."""
_NOT_REACHED = "an assertion of the test was not reached"
_FAILED = "an assertion failed"
_NO_REPORT: CheckReport = (0, 0, "", [])
_FORGED = "a negated assertion passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFunction:
    """A function of a test file; lines count from its first one, which is 1.

    Attributes:
        path: The file.
        first_line: Where it begins, its decorators included.
        num_lines: How many lines it has.
        name: The names of its classes and its own, ``::`` between them.
        digest: Of its source.
        constants: Digest of the assignments of the module that it reads.
        shape: Edits of both versions.
    """

    __test__ = False  # pytest collects classes called Test*

    path: str
    first_line: int
    num_lines: int
    name: str
    digest: str
    constants: str = ""
    shape: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPlace:
    """A check of a function.

    Attributes:
        function: The number of the function.
        place: Where its wrapper goes.
        is_item: Whether the wrapper is an item of a ``with`` statement.
        is_optional: Whether a correct program may leave it out.
    """

    function: int
    place: Place
    is_item: bool = False
    is_optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A negation that is drawn on its own.

    Attributes:
        function: The number of the function.
        edits: What negates it.
        checks: The numbers of the checks that it makes fail.
        tests: The tests in which they fail.
        level: How strong it is.
        is_bit: Whether neither the source nor the base tells which version is the original.
        is_every: Whether the checks fail each time they are executed.
    """

    function: int
    edits: tuple[Edit, ...]
    checks: tuple[int, ...]
    tests: tuple[str, ...]
    level: Level
    is_bit: bool = False
    is_every: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a test ended in a run, and what that says.

    Attributes:
        status: `TestStatus.PASSED` where every check ended as it should.
        message: Why it did not.
        passed: The checks that passed where they are original.
        deceived: The checks that passed where they are negated.
        failed: Whether a check failed where it is original, or the test itself did not pass.
        first_wrong: The number of the first check that ended wrong; -1 where the test itself did.
    """

    status: TestStatus
    message: str = ""
    passed: frozenset[int] = frozenset()
    deceived: frozenset[int] = frozenset()
    failed: bool = False
    first_wrong: int = -1

    @property
    def rank(self) -> tuple[bool, int]:
        """Orders what is wrong in two versions alike, whichever negates what: failures first."""
        return not self.failed, self.first_wrong


@dataclass(frozen=True, kw_only=True)
class Challenge:
    """What is negated in the tests of a task.

    Attributes:
        functions: The functions that hold checks.
        checks: The checks, by number.
        units: The units, by number.
        reached: The checks that each test reaches with a correct program.
        names: The names under which tests are reported, where their tables got others.
        is_recorded: Whether checks record their outcomes; if not, the first failure of a function
            ends its test, and each function has one check and one unit at most.
    """

    functions: tuple[TestFunction, ...] = ()
    checks: tuple[CheckPlace, ...] = ()
    units: tuple[Unit, ...] = ()
    reached: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    is_recorded: bool = True

    def level(self, test: str) -> Level:
        """Returns the level of the strongest unit of a test."""
        levels = {unit.level for unit in self.units_of([test])}
        return next((level for level in Level if level in levels), Level.STRUCTURE)

    def num_bits(self, tests: Collection[str]) -> int:
        """Returns how many secret draws a program has to guess to forge all of some tests."""
        return sum(unit.is_bit for unit in self.units_of(tests))

    def units_of(self, tests: Collection[str]) -> list[Unit]:
        """Returns the units of some tests, in order."""
        numbers = {number for test in tests for number in self._units_by_test.get(test, ())}
        return [self.units[number] for number in sorted(numbers)]

    def draw(self, tests: Collection[str], rng: Random) -> tuple[frozenset[int], frozenset[int]]:
        """Returns the units that two versions of the files negate, opposite ones for some tests."""
        numbers = {number for test in tests for number in self._units_by_test.get(test, ())}
        first = frozenset(number for number in sorted(numbers) if rng.getrandbits(1))
        return first, frozenset(numbers) - first

    def changed(self, files: Mapping[str, bytes]) -> set[str]:
        """Returns the tests whose functions, or the constants they read, are not as they were.

        Args:
            files: Content by path of those test files that a patch may change.
        """
        lost: set[int] = set()
        for path, data in files.items():
            own = {n: one for n, one in enumerate(self.functions) if one.path == path}
            lost.update(n for n, one in own.items() if not _is_held(data, one))
        checks = {n for n, check in enumerate(self.checks) if check.function in lost}
        return {test for test, reached in self.reached.items() if checks.intersection(reached)}

    def rewritten(
        self,
        files: Mapping[str, bytes],
        negated: Collection[int],
        more: Mapping[int, Sequence[Edit]] = {},
    ) -> dict[str, bytes]:
        """Returns the test files with some units negated.

        Args:
            files: Content by path.
            negated: The numbers of the units.
            more: Further edits by the number of a function.
        """
        edits: list[list[Edit]] = [[*one.shape] for one in self.functions]
        for number, check in enumerate(self.checks):
            if self.is_recorded:
                text = f"{RECORDER}[{number}]"
                text = f"{text}, " if check.is_item else f"with {text}: "
                edits[check.function].append((check.place, check.place, text))
        for number in negated:
            edits[self.units[number].function] += self.units[number].edits
        for number, others in more.items():
            edits[number] += others
        by_path: dict[str, list[tuple[TestFunction, list[Edit]]]] = {}
        for function, changes in zip(self.functions, edits, strict=True):
            by_path.setdefault(function.path, []).append((function, changes))
        return {
            path: _edited(files[path], changes)
            for path, changes in by_path.items()
            if path in files
        }

    def outcome(self, test: str, run: Run, negated: Collection[int]) -> Outcome:
        """Returns how a test ended in a run that negates some units."""
        name = self.names.get(test, test)
        status = run.status(name)
        failing: dict[int, bool] = {}  # whether a check fails every time
        for number in self._units_by_test.get(test, ()):
            if number in negated:
                unit = self.units[number]
                failing |= dict.fromkeys(unit.checks, unit.is_every)
        if not self.is_recorded:
            return _by_status(status, run.message(test), self.reached.get(test, ()), failing)
        if status is not TestStatus.PASSED:
            return Outcome(status=status, message=run.message(name), failed=True)
        return self._by_checks(test, run.checks(name), failing)

    def _by_checks(
        self, test: str, counts: Mapping[int, CheckReport], failing: Mapping[int, bool]
    ) -> Outcome:
        passed, deceived, wrong = set(), set(), dict[int, str]()
        for check in self.reached.get(test, ()):
            num_passed, num_failed, error, _ = counts.get(check, _NO_REPORT)
            if not num_passed and not num_failed:
                if not self.checks[check].is_optional:
                    wrong[check] = _NOT_REACHED
            elif check not in failing and num_failed:
                wrong[check] = error or _FAILED
            elif check not in failing:
                passed.add(check)
            elif not num_failed or (num_passed and failing[check]):
                deceived.add(check)
        first = min(wrong or deceived, default=-1)
        return Outcome(
            status=TestStatus.FAILED if wrong or deceived else TestStatus.PASSED,
            message=wrong.get(first, _FORGED if deceived else ""),
            passed=frozenset(passed),
            deceived=frozenset(deceived),
            failed=bool(wrong),
            first_wrong=first,
        )

    @cached_property
    def _units_by_test(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, unit in enumerate(self.units):
            for test in unit.tests:
                found.setdefault(test, []).append(number)
        return found


def _by_status(
    status: TestStatus, message: str, checks: Sequence[int], failing: Mapping[int, bool]
) -> Outcome:
    """Returns the outcome of a test whose only check is not recorded."""
    has_passed = status is TestStatus.PASSED
    if not failing.keys() & set(checks):
        passed = frozenset(checks) if has_passed else frozenset[int]()
        return Outcome(status=status, message=message, passed=passed, failed=not has_passed)
    if has_passed:
        return Outcome(status=TestStatus.FAILED, message=_FORGED, deceived=frozenset(checks))
    return Outcome(status=TestStatus.PASSED)


def digest_of(lines: Sequence[str]) -> str:
    """Returns a digest of some lines."""
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


def _is_held(data: bytes, function: TestFunction) -> bool:
    """Whether a file holds a function, and the constants that it reads, as they were."""
    try:
        file = TestFile.read(data)
    except (SyntaxError, ValueError, RecursionError, LookupError):
        return False
    node = file.node(function.name)
    is_same = node is not None and digest_of([file.constants(node)]) == function.constants
    return is_same and _offset(file.lines, function) is not None


def _offset(lines: Sequence[str], function: TestFunction) -> int | None:
    """Returns how many lines before a function are new; None where the lines do not hold it."""
    first, size = function.first_line - 1, function.num_lines
    starts: list[int] = [first, *range(len(lines) - size + 1)]
    for start in starts:
        if digest_of(lines[start : start + size]) == function.digest:
            return start - first
    return None


def _lines(data: bytes) -> tuple[list[str], str, bool]:
    try:
        text, encoding, has_crlf = decoded(data)
    except (SyntaxError, ValueError, LookupError):
        return [], "", False
    return lines_of(text), encoding, has_crlf


def _edited(data: bytes, changes: Sequence[tuple[TestFunction, Sequence[Edit]]]) -> bytes:
    """Returns a file with edits of its functions, which count lines from their own first ones."""
    lines, encoding, has_crlf = _lines(data)
    edits: list[Edit] = []
    for function, own in changes:
        offset = _offset(lines, function)
        if offset is not None:
            by = function.first_line - 1 + offset
            edits += [((a + by, b), (c + by, d), text) for (a, b), (c, d), text in own]
    text = applied(lines, edits)
    return (text.replace("\n", "\r\n") if has_crlf else text).encode(encoding)
