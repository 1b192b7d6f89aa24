"""Computes a grade from the reports of runs."""

from collections.abc import Mapping

from coding_gym.errors import error_line
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading.report import Run
from coding_gym.task import Task

_MAX_NAMED = 3
_UNNAMED = 'an assertion of the bug\'s tests did not hold (challenge="passed" names the test)'


def judge(
    task: Task, statuses: Mapping[str, TestStatus], messages: Mapping[str, str], run: Run
) -> Grade:
    """Returns the grade of a patch.

    Args:
        task: The task.
        statuses: How each expected test ended.
        messages: Why tests did not pass.
        run: The last run, which a time limit or a crash can cut short.
    """
    if not run.has_ended:  # the earlier reports of such a run are not trusted
        statuses = {
            test: status if status is TestStatus.UNDECIDED else TestStatus.MISSING
            for test, status in statuses.items()
        }
    reason, detail = _reason(run, statuses, messages)
    return Grade(
        resolved=reason is GradeReason.RESOLVED,
        reason=reason,
        fail_to_pass={test: statuses[test] for test in task.fail_to_pass},
        pass_to_pass={test: statuses[test] for test in task.pass_to_pass},
        detail=detail,
    )


def _reason(
    run: Run, statuses: Mapping[str, TestStatus], messages: Mapping[str, str]
) -> tuple[GradeReason, str]:
    if run.forgery:
        return GradeReason.TAMPERED, run.forgery
    if run.out_of_memory:
        return GradeReason.TESTS_FAILED, "the tests used more memory than the sandbox allows"
    if run.is_lost:
        return GradeReason.TESTS_FAILED, "the code under test ended the supervisor of the tests"
    if run.timed_out:
        return GradeReason.TIMEOUT, "the tests did not end in time"
    if not run.has_ended:
        reason = error_line(run.tail)
        return GradeReason.TESTS_FAILED, f"the test process ended before its tests did: {reason}"
    decided = [test for test, status in statuses.items() if status is not TestStatus.UNDECIDED]
    bad = [test for test in decided if statuses[test] is not TestStatus.PASSED]
    if not bad and len(decided) == len(statuses):
        return GradeReason.RESOLVED, (
            f"all {len(statuses)} expected tests passed"
            if len(statuses) > 1
            else "the expected test passed"
        )
    if not bad:
        return GradeReason.TESTS_FAILED, _UNNAMED
    named = ", ".join(f"{test} ({statuses[test]})" for test in bad[:_MAX_NAMED])
    more = ", …" if len(bad) > _MAX_NAMED else ""
    reason = next(filter(None, (messages.get(test) for test in bad)), "")
    if not run.statuses:
        reason = reason or error_line(run.tail, "")  # pytest's own complaint
    count = f"{len(bad)} of {len(decided)} tests did not pass"
    return GradeReason.TESTS_FAILED, f"{count}: {named}{more}" + (f"; {reason}" if reason else "")
