"""Rewards computed from the expected tests of a grade."""

from collections.abc import Mapping

from coding_gym.grade import Grade, GradeReason, Level, TestStatus

# Grades with other reasons have no results, or results that are not reliable.
_MEASURED = (GradeReason.RESOLVED, GradeReason.TESTS_FAILED)


def _num_unverified(grade: Grade) -> int:
    """Returns the number of fail-to-pass tests whose results the code under test can forge.

    0 unless ``is_verified`` is False. Then it is the number of tests at level ``structure``, or of
    all fail-to-pass tests if ``levels`` has no such tests.
    """
    if grade.is_verified is not False:
        return 0
    return grade.levels.get(Level.STRUCTURE, len(grade.fail_to_pass))


def _num_fixed(grade: Grade) -> int:
    return max(0, _num_passed(grade.fail_to_pass) - _num_unverified(grade))


def _num_passed(statuses: Mapping[str, TestStatus]) -> int:
    return sum(status is TestStatus.PASSED for status in statuses.values())


def net_fraction_fixed(grade: Grade) -> float:
    """Returns the share of fixed tests, minus the broken tests, from 0 to 1.

    The score is ``(fixed - broken) / len(fail_to_pass)``, at least 0: *fixed* is the number of
    fail-to-pass tests that pass, *broken* the number of pass-to-pass tests that do not pass. The
    base tree and a patch that changes no result score 0; only a patch with which all expected tests
    pass scores 1. Patches that are empty, do not apply, exceed the time limit or tamper with the
    tests score 0, as do patches whose tests were not challenged. A passed test that cannot be
    negated does not count as fixed.

    Source: this project.

    >>> from dataclasses import replace
    >>> partial = Grade(
    ...     resolved=False,
    ...     reason=GradeReason.TESTS_FAILED,
    ...     fail_to_pass={"a": TestStatus.PASSED, "b": TestStatus.FAILED},
    ... )
    >>> worse = replace(partial, pass_to_pass={"c": TestStatus.FAILED})
    >>> net_fraction_fixed(partial), net_fraction_fixed(worse)
    (0.5, 0.0)
    """
    if grade.reason not in _MEASURED:
        return 0.0
    if not grade.fail_to_pass:
        return float(grade.resolved and grade.is_verified is not False)
    broken = len(grade.pass_to_pass) - _num_passed(grade.pass_to_pass)
    return max(0, _num_fixed(grade) - broken) / len(grade.fail_to_pass)


def fraction_passed(grade: Grade) -> float:
    """Returns the share of all expected tests that passed, from 0 to 1.

    This reward also pays for behaviour that was never broken: most expected tests of most tasks are
    pass-to-pass tests, and these count as soon as one fail-to-pass test passes. Otherwise they are
    undecided and the score is 0, unless the task's tests can only run together. Patches that are
    empty, do not apply, exceed the time limit or tamper with the tests score 0, as do patches whose
    tests were not challenged. Tests that cannot be negated count as in `net_fraction_fixed`.

    Source: this project.

    >>> passed, failed = TestStatus.PASSED, TestStatus.FAILED
    >>> partial = Grade(
    ...     resolved=False,
    ...     reason=GradeReason.TESTS_FAILED,
    ...     fail_to_pass={"a": passed, "b": failed},
    ...     pass_to_pass={"c": passed, "d": passed},
    ...     is_verified=True,
    ... )
    >>> fraction_passed(partial), net_fraction_fixed(partial)
    (0.75, 0.5)
    """
    num_tests = len(grade.fail_to_pass) + len(grade.pass_to_pass)
    is_forgeable = grade.is_verified is False and not _num_fixed(grade)
    if not num_tests or grade.reason not in _MEASURED or is_forgeable:
        return 0.0
    num_passed = _num_passed(grade.fail_to_pass) + _num_passed(grade.pass_to_pass)
    return (num_passed - _num_unverified(grade)) / num_tests
