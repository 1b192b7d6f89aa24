"""Rewards computed from a grade."""

from collections.abc import Mapping, Sequence

from coding_gym.grade import Grade, TestStatus
from coding_gym.trajectory import Turn


def _num_unverified(grade: Grade) -> int:
    """Returns the number of passed fail-to-pass tests whose results tested code can forge.

    The result is 0 if ``is_verified`` is True or None. An empty ``unnegated`` means all tests.
    """
    if grade.is_verified is not False:
        return 0
    tests = grade.unnegated or grade.fail_to_pass
    return sum(grade.fail_to_pass.get(test) is TestStatus.PASSED for test in tests)


def _num_fixed(grade: Grade) -> int:
    return _num_passed(grade.fail_to_pass) - _num_unverified(grade)


def _num_passed(statuses: Mapping[str, TestStatus]) -> int:
    return sum(status is TestStatus.PASSED for status in statuses.values())


def net_fraction_fixed(grade: Grade) -> float:
    """Returns the share of fixed tests, minus the broken tests, from 0 to 1.

    The score is ``(fixed - broken) / len(fail_to_pass)``, at least 0: *fixed* is the number of
    fail-to-pass tests that pass, and *broken* is the number of pass-to-pass tests that do not pass.
    The base tree and a patch that changes no result score 0; only a patch with which all expected
    tests pass scores 1. Patches that are empty, do not apply, exceed the time limit or tamper with
    the tests score 0. Patches whose tests were not challenged (run again with negated assertions)
    score 0. A passed test that cannot be negated does not count as fixed.

    Source: this project.

    >>> from dataclasses import replace
    >>> from coding_gym.grade import GradeReason
    >>> partial = Grade(
    ...     resolved=False,
    ...     reason=GradeReason.TESTS_FAILED,
    ...     fail_to_pass={"a": TestStatus.PASSED, "b": TestStatus.FAILED},
    ... )
    >>> worse = replace(partial, pass_to_pass={"c": TestStatus.FAILED})
    >>> net_fraction_fixed(partial), net_fraction_fixed(worse)
    (0.5, 0.0)
    """
    if not grade.reason.has_results:
        return 0.0
    if not grade.fail_to_pass:
        return float(grade.resolved and grade.is_verified is not False)
    num_broken = len(grade.pass_to_pass) - _num_passed(grade.pass_to_pass)
    return max(0, _num_fixed(grade) - num_broken) / len(grade.fail_to_pass)


def fraction_passed(grade: Grade) -> float:
    """Returns the share of all expected tests that passed, from 0 to 1.

    Most expected tests of most tasks are pass-to-pass tests, so this reward mostly counts behaviour
    that was never broken. If no fail-to-pass test passes, pass-to-pass tests are undecided and the
    score is 0, unless the task's tests can only run together. Patches that are empty, do not apply,
    exceed the time limit or tamper with the tests score 0, as do patches whose tests were not
    challenged. Tests that cannot be negated count as in `net_fraction_fixed`.

    Source: this project.

    >>> from coding_gym.grade import GradeReason
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
    if not num_tests or not grade.reason.has_results or is_forgeable:
        return 0.0
    num_passed = _num_passed(grade.fail_to_pass) + _num_passed(grade.pass_to_pass)
    return (num_passed - _num_unverified(grade)) / num_tests


def areno(grade: Grade, turns: Sequence[Turn]) -> float:
    """Returns 1.0, 0.5, -0.5 or -1.0 for the grade and the submitted status.

    | | submitted as solved | not submitted as solved |
    |---|---|---|
    | the tests pass | 1.0 | 0.5 |
    | the tests do not pass | -0.5 | -1.0 |

    Source: ``reward_fn`` in ``examples/agentic/coding/reward.py`` of AReno. Changed: in AReno the
    tests pass if each test command exited with 0 once in the policy's shell, even if the policy
    weakened a test or broke the tree later. Here the tests pass if the grade is resolved. AReno's
    condition that ``apply_patch`` was called then always holds: a resolved patch changes code.

    Args:
        grade: The grade of the patch.
        turns: The episode's turns; a ``submit`` without a ``status`` counts as solved.

    >>> from coding_gym.calls import ToolCall, ToolResult
    >>> from coding_gym.grade import GradeReason
    >>> def submit(**arguments):
    ...     done = ToolResult("submitted", submitted=True)
    ...     return Turn(action="", calls=(ToolCall("submit", arguments),), results=(done,))
    >>> good = Grade(resolved=True, reason=GradeReason.RESOLVED)
    >>> areno(good, [submit(status="solved")]), areno(good, [submit(status="blocked")])
    (1.0, 0.5)
    >>> bad = Grade(resolved=False, reason=GradeReason.TESTS_FAILED)
    >>> areno(bad, [submit()]), areno(bad, [Turn(action="I give up.")])
    (-0.5, -1.0)
    """
    is_solved = _is_submitted_as_solved(turns)
    if grade.resolved:
        return 1.0 if is_solved else 0.5
    return -0.5 if is_solved else -1.0


def _is_submitted_as_solved(turns: Sequence[Turn]) -> bool:
    last = turns[-1] if turns else Turn(action="")
    for call, result in zip(last.calls, last.results, strict=False):
        if result.submitted:
            return bool(call.arguments.get("status", "solved") == "solved")
    return False
