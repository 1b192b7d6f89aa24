"""From what a run reported to the grade."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from coding_gym.errors import last_line
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading.report import RunReport
from coding_gym.grading.tree import Run
from coding_gym.task import Task

_MAX_NAMED = 3


def judge(
    task: Task,
    run: Run,
    *,
    failed: Mapping[str, str] = MappingProxyType({}),
    passed: Collection[str] = (),
) -> Grade:
    """Returns the grade of a patch by one run of its tests and what is known besides.

    Args:
        task: The task.
        run: The run.
        failed: Tests that failed elsewhere, and why.
        passed: Tests that passed elsewhere, which is enough for them.
    """
    report = run.report
    if report is not None and failed:
        report = report.failing({name: failed[t] for t in failed for name in report.names(t)})
    # What a run that was cut short reported before cannot be believed.
    statuses = {
        test: report.status(test) if report is not None and run.has_ended else TestStatus.MISSING
        for test in task.expected_tests
    }
    statuses |= dict.fromkeys(passed, TestStatus.PASSED)
    reason, detail = _reason(task, run, report, statuses)
    return Grade(
        resolved=reason is GradeReason.RESOLVED,
        reason=reason,
        fail_to_pass={test: statuses[test] for test in task.fail_to_pass},
        pass_to_pass={test: statuses[test] for test in task.pass_to_pass},
        detail=detail,
    )


def _reason(
    task: Task, run: Run, report: RunReport | None, statuses: Mapping[str, TestStatus]
) -> tuple[GradeReason, str]:
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
    failed = [t for t in task.expected_tests if statuses[t] is not TestStatus.PASSED]
    if failed:
        return GradeReason.TESTS_FAILED, _failures(task, report, failed)
    return GradeReason.RESOLVED, f"all {len(task.expected_tests)} expected tests passed"


def _failures(task: Task, report: RunReport, failed: Sequence[str]) -> str:
    named = ", ".join(f"{test} ({report.status(test)})" for test in failed[:_MAX_NAMED])
    more = ", …" if len(failed) > _MAX_NAMED else ""
    said = next((m for m in map(report.message, failed) if m), "")
    if not report.statuses:
        said = said or last_line(report.tail, "")  # pytest's own complaint
    count = f"{len(failed)} of {len(task.expected_tests)} expected tests did not pass"
    return f"{count}: {named}{more}" + (f"; {said}" if said else "")
