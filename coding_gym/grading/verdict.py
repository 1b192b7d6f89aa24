"""From what a run reported to the grade."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading.canaries import Canary
from coding_gym.grading.report import CanaryVerdict, RunReport, check_canaries
from coding_gym.grading.supervision import last_line
from coding_gym.task import Task

_MAX_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One try: what was reported, and whether it can be believed.

    Attributes:
        report: The report; None where the supervisor was stopped or killed.
        canaries: What the canaries say.
        forgery: How it is known that the run was tampered with, or "".
    """

    report: RunReport | None
    canaries: CanaryVerdict = field(default_factory=CanaryVerdict)
    forgery: str = ""

    @classmethod
    def of(cls, report: RunReport | None, canaries: Sequence[Canary], *, is_edited: bool) -> Self:
        """Judges whether a run can be believed.

        Args:
            report: The report.
            canaries: The canaries that were planted.
            is_edited: Whether the test files were changed while the tests ran.
        """
        if report is None:
            return cls(report=None)
        verdict = check_canaries(report, canaries)
        forgery = ""
        if verdict.passed:
            forgery = f"a test that always fails was reported as passed: {verdict.passed[0]}"
        elif report.is_forged:
            forgery = "something else than the reporter wrote to the report"
        elif is_edited:
            forgery = "the test files were changed while the tests ran"
        return cls(report=report, canaries=verdict, forgery=forgery)

    @property
    def has_ended(self) -> bool:
        """Whether the tests ran to their end."""
        return self.report is not None and self.report.ended and not self.report.timed_out

    @property
    def is_final(self) -> bool:
        """Whether a second try could not change the verdict."""
        if self.forgery:
            return True
        if self.report is None or self.report.timed_out:
            return False
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
        return GradeReason.TIMEOUT, "the tests did not end in time, twice"
    if not run.has_ended:
        said = last_line(report.tail) or "no output"
        return GradeReason.TESTS_FAILED, f"the test process ended before its tests did: {said}"
    if run.canaries.lost:
        lost = run.canaries.lost[0].node_id
        return GradeReason.TAMPERED, f"a test that always fails was not reported so: {lost}"
    failed = [t for t in task.expected_tests if report.status(t) is not TestStatus.PASSED]
    if failed:
        return GradeReason.TESTS_FAILED, _failures(task, report, failed)
    return GradeReason.RESOLVED, f"all {len(task.expected_tests)} expected tests passed"


def _failures(task: Task, report: RunReport, failed: Sequence[str]) -> str:
    named = ", ".join(f"{test} ({report.status(test)})" for test in failed[:_MAX_NAMED])
    more = ", …" if len(failed) > _MAX_NAMED else ""
    said = next((m for m in map(report.message, failed) if m), last_line(report.tail))
    count = f"{len(failed)} of {len(task.expected_tests)} expected tests did not pass"
    return f"{count}: {named}{more}" + (f"; {said}" if said else "")
