"""From what a run reported to the grade."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from coding_gym.errors import error_line
from coding_gym.grade import Grade, GradeReason, TestStatus
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
    # What a run that was cut short reported before cannot be believed.
    statuses = {
        test: run.status(test) if run.has_ended else TestStatus.MISSING
        for test in task.expected_tests
    }
    known = [test for test in failed if statuses[test] is not TestStatus.MISSING]
    statuses |= dict.fromkeys(known, TestStatus.FAILED) | dict.fromkeys(passed, TestStatus.PASSED)
    reason, detail = _reason(run, statuses, failed)
    return Grade(
        resolved=reason is GradeReason.RESOLVED,
        reason=reason,
        fail_to_pass={test: statuses[test] for test in task.fail_to_pass},
        pass_to_pass={test: statuses[test] for test in task.pass_to_pass},
        detail=detail,
    )


def _reason(
    run: Run, statuses: Mapping[str, TestStatus], failed: Mapping[str, str]
) -> tuple[GradeReason, str]:
    report = run.report
    if run.forgery:
        return GradeReason.TAMPERED, run.forgery
    if report is not None and report.out_of_memory:
        return GradeReason.TESTS_FAILED, "the tests used more memory than the sandbox allows"
    if report is None:
        return GradeReason.TESTS_FAILED, "the code under test ended the supervisor of the tests"
    if report.timed_out:
        hint = ", and hardly used the CPU: they wait, or the machine is busy"
        said = hint if report.is_starved else ""
        return GradeReason.TIMEOUT, f"the tests did not end in time{said}"
    if not run.has_ended:
        said = error_line(report.tail)
        return GradeReason.TESTS_FAILED, f"the test process ended before its tests did: {said}"
    bad = [test for test, status in statuses.items() if status is not TestStatus.PASSED]
    if not bad:
        return GradeReason.RESOLVED, (
            f"all {len(statuses)} expected tests passed"
            if len(statuses) > 1
            else "the expected test passed"
        )
    named = ", ".join(f"{test} ({statuses[test]})" for test in bad[:_MAX_NAMED])
    more = ", …" if len(bad) > _MAX_NAMED else ""
    said = next(filter(None, (failed.get(test) or report.message(test) for test in bad)), "")
    if not report.statuses:
        said = said or error_line(report.tail, "")  # pytest's own complaint
    count = f"{len(bad)} of {len(statuses)} expected tests did not pass"
    return GradeReason.TESTS_FAILED, f"{count}: {named}{more}" + (f"; {said}" if said else "")
