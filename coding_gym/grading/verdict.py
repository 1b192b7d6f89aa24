"""From what a run reported to the grade."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Self

from coding_gym.errors import last_line
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading.report import CanaryVerdict, RunReport, check_canaries
from coding_gym.grading.suite_file import Canary
from coding_gym.task import Task

_UNSTEADY = "it passed in one run, and not in another that asked the same"
_MAX_NAMED = 3
_MAX_NAME_CHARS = 200
_MAX_COMPARED = 500
_MIN_LIKENESS = 0.75  # most names begin alike


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One try: what was reported, and whether it can be believed.

    Attributes:
        report: The report; None where the supervisor was stopped or killed.
        planted: The canaries that ran among the tests.
        canaries: What they say.
        forgery: How it is known that the run was tampered with, or "".
        turned: Node ids (without parameters) of tests that were turned against themselves.
        files: Content by path of the test files that hold canaries and turned tests.
        suspects: Node ids (without parameters) of the turned tests that passed, or else of those
            whose canaries did not end as tests that fail.
    """

    report: RunReport | None
    planted: tuple[Canary, ...] = ()
    canaries: CanaryVerdict = field(default_factory=CanaryVerdict)
    forgery: str = ""
    turned: frozenset[str] = frozenset()
    files: Mapping[str, bytes] = field(default_factory=dict)
    suspects: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        report: RunReport | None,
        canaries: Sequence[Canary],
        *,
        is_edited: bool,
        files: Mapping[str, bytes],
        turned: Iterable[str] = (),
    ) -> Self:
        """Judges whether a run can be believed.

        Args:
            report: The report.
            canaries: The canaries that were planted.
            is_edited: Whether the test files were changed while the tests ran.
            files: Content by path of those that hold canaries and turned tests.
            turned: Node ids (without parameters) of tests that were turned against themselves.
        """
        if report is None:
            return cls(report=None)
        verdict = check_canaries(report, canaries)
        passed = {name.partition("[")[0] for name in verdict.passed}
        suspects = {c.original_id for c in canaries if c.node_id in passed}
        report = report.without({canary.node_id for canary in canaries})
        forgery = ""
        if verdict.passed:
            forgery = f"a test that always fails was reported as passed: {verdict.passed[0]}"
        elif report.is_forged:
            forgery = "something else than the reporter wrote to the report"
        elif is_edited:
            forgery = "the test files were changed while the tests ran"
        return cls(
            report=report,
            planted=tuple(canaries),
            canaries=verdict,
            forgery=forgery,
            turned=frozenset(turned),
            files=files,
            suspects=frozenset(suspects or (canary.original_id for canary in verdict.lost)),
        )

    def repaired(self, task: Task) -> tuple[str, ...]:
        """Ids of the tests that the bug breaks and that passed here."""
        if self.forgery or self.report is None or not (self.has_ended and self.is_final):
            return ()
        return tuple(t for t in task.fail_to_pass if self.report.status(t) is TestStatus.PASSED)

    def names(self, tests: Iterable[str]) -> tuple[str, ...]:
        """Node ids, without parameters, of the tests that expected ids stand for here."""
        found = (self.report.names(test) for test in tests) if self.report else ()
        return tuple(dict.fromkeys(name.partition("[")[0] for names in found for name in names))

    def confirmed(self, plain: "Run", turned: "Run", repaired: Sequence[str]) -> "Run":
        """Returns what this run is worth beside two more of the same tree.

        Forgery in one of them is forgery here, and one that did not end decides. A test that passed
        here must not pass where it was turned against itself, and must where it was not.

        Args:
            plain: A run of the same tests.
            turned: A run of tests some of which were turned.
            repaired: From `repaired`.
        """
        for other in (turned.with_believed(repaired, self), plain):
            if other.forgery or not other.has_ended:
                return other
        failed = [t for t in repaired if plain.status(t) is not TestStatus.PASSED]
        if self.report is None or not failed:
            return self
        names = {name for test in failed for name in self.report.names(test)}
        return replace(self, report=self.report.failing(names, _UNSTEADY))

    def with_believed(self, tests: Iterable[str], first: "Run") -> "Run":
        """Returns this run of turned tests, as forged where one of them passed as it did first."""
        for test in tests:
            names = first.names([test])
            if self.turned.issuperset(names) and self.status(test) is TestStatus.PASSED:
                said = "a test passed that asked for the opposite of what it asks"
                return replace(self, forgery=f"{said}: {test}", suspects=frozenset(names))
        return self

    def status(self, test: str) -> TestStatus:
        """Status of an expected test."""
        return TestStatus.MISSING if self.report is None else self.report.status(test)

    def has_passed(self, name: str) -> bool:
        """Whether a test function (a node id without parameters) passed with any parameters."""
        seen = self.report.instances(name).values() if self.report else ()
        return TestStatus.PASSED in seen

    @property
    def has_ended(self) -> bool:
        """Whether the tests ran to their end."""
        return self.report is not None and self.report.ended and not self.report.timed_out

    @property
    def is_final(self) -> bool:
        """Whether a second try could not change the verdict."""
        if self.forgery:
            return True
        if self.report is None:
            return False
        if self.report.timed_out:
            return not self.report.is_starved
        return not (self.has_ended and self.canaries.lost)


def judge(task: Task, run: Run) -> Grade:
    """Returns the grade of a patch by the last run of its tests."""
    report = run.report
    reason, detail = _reason(task, run)
    # What a run that was cut short reported before cannot be checked by its canaries.
    statuses = {
        test: report.status(test) if report is not None and run.has_ended else TestStatus.MISSING
        for test in task.expected_tests
    }
    return Grade(
        resolved=reason is GradeReason.RESOLVED,
        reason=reason,
        fail_to_pass={test: statuses[test] for test in task.fail_to_pass},
        pass_to_pass={test: statuses[test] for test in task.pass_to_pass},
        num_canaries=run.canaries.num_held,
        detail=detail,
    )


def _reason(task: Task, run: Run) -> tuple[GradeReason, str]:
    report = run.report
    if run.forgery:
        return GradeReason.TAMPERED, run.forgery
    if report is None:
        return GradeReason.TESTS_FAILED, "the code under test ended the supervisor of the tests"
    if report.timed_out:
        hint = ", and hardly used the CPU: they wait, or the machine is busy"
        said = hint if report.is_starved else ""
        return GradeReason.TIMEOUT, f"the tests did not end in time{said}"
    if not run.has_ended:
        said = last_line(report.tail, "no output")
        return GradeReason.TESTS_FAILED, f"the test process ended before its tests did: {said}"
    if run.canaries.lost:
        lost = run.canaries.lost[0].node_id
        return GradeReason.TAMPERED, f"a test that always fails was not reported so: {lost}"
    failed = [t for t in task.expected_tests if report.status(t) is not TestStatus.PASSED]
    if failed:
        return GradeReason.TESTS_FAILED, _failures(task, run, report, failed)
    return GradeReason.RESOLVED, f"all {len(task.expected_tests)} expected tests passed"


def _failures(task: Task, run: Run, report: RunReport, failed: Sequence[str]) -> str:
    named = ", ".join(_ending(test, task, run, report) for test in failed[:_MAX_NAMED])
    more = ", …" if len(failed) > _MAX_NAMED else ""
    said = next((m for m in map(report.message, failed) if m), "")
    if not report.statuses:
        said = said or last_line(report.tail, "")  # pytest's own complaint
    count = f"{len(failed)} of {len(task.expected_tests)} expected tests did not pass"
    return f"{count}: {named}{more}" + (f"; {said}" if said else "")


def _ending(test: str, task: Task, run: Run, report: RunReport) -> str:
    """How a test ended and, where it never ran, which one of the same file may have been meant."""
    status = report.status(test)
    path, _, rest = test.partition("::")
    beside = _unexpected(path, task, run, report) if status is TestStatus.MISSING else []
    by_name = {_name(one): one for one in reversed(beside)}  # a forgotten class is found, too
    close = difflib.get_close_matches(_name(rest), by_name, n=1, cutoff=_MIN_LIKENESS)
    return f"{test} ({status}{f'; did you mean {by_name[close[0]]}?' if close else ''})"


def _name(test: str) -> str:
    """A test's id without file and classes."""
    function, bracket, parameters = test.partition("[")
    return function.rpartition("::")[2] + bracket + parameters


def _unexpected(path: str, task: Task, run: Run, report: RunReport) -> list[str]:
    """Ids, after the path, of tests of a file that ran beside the expected ones and canaries."""
    expected = set(task.expected_tests)
    canaries = {canary.node_id for canary in run.planted}
    others = (
        name.removeprefix(f"{path}::")
        for name in report.statuses
        if name.startswith(f"{path}::")
        and name not in expected
        and name.partition("[")[0] not in canaries
    )
    # Code under test can report any name, and as many as it likes.
    sound = (name for name in others if len(name) <= _MAX_NAME_CHARS and name.isprintable())
    return list(islice(sound, _MAX_COMPARED))
