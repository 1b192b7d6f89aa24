"""Computes a grade from the statuses of tests."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice

from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading.report import TestRun
from coding_gym.program_output import error_line
from coding_gym.task import Task
from coding_gym.text.truncate import first_names

_MAX_NAME, _MAX_COMPARED = 200, 500  # limits, as code under test can report many long names
_UNNAMED = 'an assertion failed, its negation passed, or neither ran (challenge="passed" names it)'


def judge(
    task: Task, statuses: Mapping[str, TestStatus], messages: Mapping[str, str], run: TestRun
) -> Grade:
    """Returns the grade of a patch.

    Args:
        task: The task.
        statuses: The status of each expected test.
        messages: The reason for each status other than ``PASSED``, or "".
        run: The last run.
    """
    if not run.has_ended:  # reports of an incomplete run are not trusted
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
    run: TestRun, statuses: Mapping[str, TestStatus], messages: Mapping[str, str]
) -> tuple[GradeReason, str]:
    """Returns the reason and the detail of a grade."""
    if run.forgery:
        return GradeReason.TAMPERED, run.forgery
    if run.out_of_memory:
        return GradeReason.TESTS_FAILED, "the tests used more memory than the sandbox allows"
    if run.is_lost:
        return GradeReason.TESTS_FAILED, "the supervisor of the tests was killed or stopped"
    if run.timed_out:
        return GradeReason.TIMEOUT, "the tests did not end within the time limit"
    if not run.has_ended:
        reason = error_line(run.tail)
        return GradeReason.TESTS_FAILED, f"the test process ended before all tests ended: {reason}"
    decided_tests = [t for t, status in statuses.items() if status is not TestStatus.UNDECIDED]
    failed_tests = [test for test in decided_tests if statuses[test] is not TestStatus.PASSED]
    if failed_tests:
        names = first_names([f"{test} ({statuses[test]})" for test in failed_tests])
        count = f"{len(failed_tests)} of {len(decided_tests)} tests did not pass: {names}"
        detail = [count, *_explanation(run, failed_tests, statuses, messages)]
        return GradeReason.TESTS_FAILED, "; ".join(detail)
    if len(decided_tests) < len(statuses):
        return GradeReason.TESTS_FAILED, _UNNAMED
    if len(statuses) == 1:
        return GradeReason.RESOLVED, "the expected test passed"
    return GradeReason.RESOLVED, f"all {len(statuses)} expected tests passed"


def _explanation(
    run: TestRun,
    failed_tests: Sequence[str],
    statuses: Mapping[str, TestStatus],
    messages: Mapping[str, str],
) -> Iterator[str]:
    """Yields names similar to the name of a missing test, and the message of the first failure."""
    missing_tests = [test for test in failed_tests if statuses[test] is TestStatus.MISSING]
    similar_names = _similar_names(missing_tests[0], run, statuses) if missing_tests else []
    if similar_names:
        yield f"nearest reported names: {', '.join(similar_names)}"
    reasons = [messages[test] for test in failed_tests if messages.get(test)]
    if not run.statuses:
        reasons.append(error_line(run.tail, ""))  # the error message of pytest
    yield from filter(None, reasons[:1])


def _similar_names(test: str, run: TestRun, expected: Collection[str]) -> list[str]:
    """Returns up to three similar names of unexpected tests; for a node id, of the same file."""
    file, colons, _ = test.partition("::")
    prefix = file if colons else ""
    names = (n for n in run.statuses if n.startswith(prefix) and len(n) <= _MAX_NAME)
    unexpected_names = (name for name in names if name not in expected)
    return get_close_matches(test, islice(unexpected_names, _MAX_COMPARED))
