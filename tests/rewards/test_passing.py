"""`net_fraction_fixed` and `fraction_passed`: rewards computed from a grade."""

from dataclasses import replace

from coding_gym import Grade, GradeReason, TestStatus
from coding_gym.rewards import fraction_passed as fraction
from coding_gym.rewards import net_fraction_fixed as progress

NOT_PASSED = [s for s in TestStatus if s is not TestStatus.PASSED]


def grade(
    to_pass: str, to_keep: str, reason: GradeReason = GradeReason.TESTS_FAILED, status: int = 0
) -> Grade:
    """A grade from one letter per test, ``p`` for passed."""

    statuses = {"p": TestStatus.PASSED, "f": NOT_PASSED[status]}
    failing, kept = (
        {f"t.py::{i}": statuses[letter] for i, letter in enumerate(letters)}
        for letters in (to_pass, to_keep)
    )
    resolved = reason is GradeReason.RESOLVED
    return Grade(resolved=resolved, reason=reason, fail_to_pass=failing, pass_to_pass=kept)


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
    for to_pass, to_keep, wanted_progress, wanted_fraction in cases:
        for status in range(len(NOT_PASSED)):
            graded = grade(to_pass, to_keep, status=status)
            assert progress(graded) == wanted_progress, (to_pass, to_keep, status)
            assert fraction(graded) == wanted_fraction, (to_pass, to_keep, status)


def test_a_resolved_bug_scores_one() -> None:
    for to_pass in ("p", "ppp", ""):
        resolved = grade(to_pass, "pp", GradeReason.RESOLVED)
        assert progress(resolved) == fraction(resolved) == 1, to_pass


def test_untrusted_outcomes_score_nothing() -> None:
    for reason in set(GradeReason) - {GradeReason.RESOLVED, GradeReason.TESTS_FAILED}:
        claimed = grade("ppp", "ppp", reason)
        assert progress(claimed) == fraction(claimed) == 0, reason
    for reason in (GradeReason.TESTS_FAILED, GradeReason.RESOLVED):
        unverified = replace(grade("ppf", "pp", reason), is_verified=False)
        assert progress(unverified) == fraction(unverified) == 0, reason


def test_tests_that_cannot_be_negated_pay_nothing() -> None:
    for to_pass, num, wanted in [("pp", 1, (1 / 2, 2 / 3)), ("pf", 1, (0, 0)), ("pp", 2, (0, 0))]:
        levels = {"value": len(to_pass) - num, "structure": num}
        mixed = replace(grade(to_pass, "p"), is_verified=False, levels=levels)
        assert (progress(mixed), fraction(mixed)) == wanted, (to_pass, num)
