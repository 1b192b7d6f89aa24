"""How much of what was expected a graded patch achieved."""

from coding_gym.grade import Grade, GradeReason, TestStatus

# In every other state there are no outcomes, or none that can be trusted.
_MEASURED = (GradeReason.RESOLVED, GradeReason.TESTS_FAILED)


def progress(grade: Grade) -> float:
    """Returns how far a patch led from the base tree towards a repair, from 0 to 1.

    It is ``(repaired - broken) / len(fail_to_pass)``, at least 0: *repaired* tests are those of
    ``fail_to_pass`` that pass, *broken* ones those of ``pass_to_pass`` that do not. The base tree
    scores 0, as does any patch that leaves every test as it was; only a patch with which all
    expected tests pass scores 1. Patches that are empty, do not apply, run out of time or tamper
    with the tests score 0.

    Source: this project.

    >>> from dataclasses import replace
    >>> half = Grade(
    ...     resolved=False,
    ...     reason=GradeReason.TESTS_FAILED,
    ...     fail_to_pass={"a": TestStatus.PASSED, "b": TestStatus.FAILED},
    ... )
    >>> progress(half), progress(replace(half, pass_to_pass={"c": TestStatus.FAILED}))
    (0.5, 0.0)
    """
    if grade.reason not in _MEASURED or not grade.fail_to_pass:
        return float(grade.resolved)
    repaired = sum(status is TestStatus.PASSED for status in grade.fail_to_pass.values())
    broken = sum(status is not TestStatus.PASSED for status in grade.pass_to_pass.values())
    return max(0, repaired - broken) / len(grade.fail_to_pass)


def fraction(grade: Grade) -> float:
    """Returns which part of all expected tests passed, from 0 to 1.

    It pays for behaviour that was never broken: a patch that adds a blank line passes all of
    ``pass_to_pass``, which is most of the expected tests of most tasks. Patches that are empty, do
    not apply, run out of time or tamper with the tests score 0.

    Source: this project.

    >>> passed, failed = TestStatus.PASSED, TestStatus.FAILED
    >>> blank_line = Grade(
    ...     resolved=False,
    ...     reason=GradeReason.TESTS_FAILED,
    ...     fail_to_pass={"a": failed},
    ...     pass_to_pass={"b": passed, "c": passed, "d": passed},
    ... )
    >>> fraction(blank_line), progress(blank_line)
    (0.75, 0.0)
    """
    return grade.pass_fraction if grade.reason in _MEASURED else 0.0
