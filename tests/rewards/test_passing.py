"""`net_fraction_fixed` and `fraction_passed`: rewards computed from a grade."""

from dataclasses import replace

from coding_gym import Grade, GradeReason, TestStatus
from coding_gym.rewards import fraction_passed, net_fraction_fixed

NOT_PASSED = [s for s in TestStatus if s is not TestStatus.PASSED]


def grade(
    to_pass: str, to_keep: str, reason: GradeReason = GradeReason.TESTS_FAILED, status: int = 0
) -> Grade:
    """Returns a grade from one letter per test: ``p`` for passed, ``f`` for another status."""
    statuses = {"p": TestStatus.PASSED, "f": NOT_PASSED[status]}
    fail_to_pass, pass_to_pass = (
        {f"t.py::{i}": statuses[letter] for i, letter in enumerate(letters)}
        for letters in (to_pass, to_keep)
    )
    resolved = reason is GradeReason.RESOLVED
    return Grade(
        resolved=resolved, reason=reason, fail_to_pass=fail_to_pass, pass_to_pass=pass_to_pass
    )


def test_worked_examples() -> None:
    cases = [
        ("ff", "pppp", 0.0, 4 / 6),  # a patch that changes no result
        ("pf", "pppp", 0.5, 5 / 6),
        ("pp", "pppf", 0.5, 5 / 6),
        ("pf", "pppf", 0.0, 4 / 6),
        ("pf", "ffff", 0.0, 1 / 6),
        ("ppf", "", 2 / 3, 2 / 3),
        ("ff", "ffff", 0.0, 0.0),
        ("", "pf", 0.0, 0.5),
    ]
    for to_pass, to_keep, net_fraction, fraction in cases:
        for status in range(len(NOT_PASSED)):
            graded = grade(to_pass, to_keep, status=status)
            assert net_fraction_fixed(graded) == net_fraction, (to_pass, to_keep, status)
            assert fraction_passed(graded) == fraction, (to_pass, to_keep, status)
    for to_pass in ("p", "ppp", ""):
        resolved = grade(to_pass, "pp", GradeReason.RESOLVED)
        assert net_fraction_fixed(resolved) == fraction_passed(resolved) == 1, to_pass


def test_untrusted_outcomes_score_nothing() -> None:
    for reason in set(GradeReason) - {GradeReason.RESOLVED, GradeReason.TESTS_FAILED}:
        claimed = grade("ppp", "ppp", reason)
        assert net_fraction_fixed(claimed) == fraction_passed(claimed) == 0, reason
    for reason in (GradeReason.TESTS_FAILED, GradeReason.RESOLVED):
        unverified = replace(grade("ppf", "pp", reason), is_verified=False)
        assert net_fraction_fixed(unverified) == fraction_passed(unverified) == 0, reason


def test_tests_that_cannot_be_negated_pay_nothing() -> None:
    cases = [
        ("pp", ["t.py::0"], 1 / 2, 2 / 3),
        ("pf", ["t.py::0"], 0, 0),
        ("pf", ["t.py::1"], 1 / 2, 2 / 3),
        ("pp", ["t.py::0", "t.py::1"], 0, 0),
    ]
    for to_pass, tests, net_fraction, fraction in cases:
        mixed = replace(grade(to_pass, "p"), is_verified=False, unnegated=tuple(tests))
        assert net_fraction_fixed(mixed) == net_fraction, (to_pass, tests)
        assert fraction_passed(mixed) == fraction, (to_pass, tests)
