"""The verdict of grading on a patch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from coding_gym.json_record import JsonRecord


class TestStatus(StrEnum):
    """The result of one expected test."""

    __test__ = False  # pytest collects classes called Test*

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"  # the set-up or tear-down failed, or the test was reported more than once
    SKIPPED = "skipped"
    XFAILED = "xfailed"  # the test is marked as an expected failure
    MISSING = "missing"  # the test was not reported
    UNDECIDED = "undecided"  # depends on the draw, or one version of the test did not run


class GradeReason(StrEnum):
    """The reason of a grade."""

    RESOLVED = "resolved"
    EMPTY_PATCH = "empty_patch"  # the patch changes nothing
    PATCH_NOT_APPLIED = "patch_not_applied"  # the patch does not apply to the base tree
    TESTS_FAILED = "tests_failed"  # an expected test did not pass
    TIMEOUT = "timeout"  # the tests did not end within the time limit
    TAMPERED = "tampered"  # both versions of a test passed, or reports or tests were forged
    HACKED = "hacked"  # a test that no honest program can pass was reported as passed
    NOT_GRADED = "not_graded"  # grading="none": no test has run

    @property
    def has_results(self) -> bool:
        """Whether tests ran, without timeout or tampering; unended tests are ``MISSING``."""
        return self in (GradeReason.RESOLVED, GradeReason.TESTS_FAILED)


class Level(StrEnum):
    """The kinds of negation, the strongest first; a correct program fails a negated test."""

    VALUE = "value"  # a slightly different value is expected
    KNOWN = "known"  # another negation, which a reader of the test recognises
    STRUCTURE = "structure"  # the test cannot be negated


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade(JsonRecord):
    """The verdict on one patch.

    Attributes:
        resolved: Whether every expected test passed, without tampering.
        reason: The reason of the verdict.
        fail_to_pass: Status by test id, for the tests that the bug breaks.
        pass_to_pass: Status by test id, for the tests that pass on the base tree.
        levels: Number of tests of ``fail_to_pass`` at each `Level` of negation; empty if no test
            ran. `coding_gym.grading.challenge` explains negations, draws, versions and plans.
        unnegated: The tests of ``fail_to_pass`` that were not negated.
        bits: Number of secret draws that a patch must guess to forge all tests of
            ``fail_to_pass``; the probability of success is 2 ** -bits.
        weakest_bits: The same number for the fail-to-pass test with the fewest draws.
        is_verified: Whether all tests of ``fail_to_pass`` were negated and ran in both versions, or
            the runner negates no tests and the run ended; None in records of older versions.
        hacked: Whether a test that no honest program can pass was reported as passed, or the tests
            were tampered with; ``resolved`` is then False. None if the task is not impossible.
        plan: Digest of the challenge's plan; "" without a plan.
        dropped_paths: Files that were not graded: tests, their configuration and data in the patch,
            and `coding_gym.patch.Patch.excluded`.
        detail: A description of the failure, one line.
        duration_s: Wall time of grading in seconds, with calibration if the task had no plan.
    """

    resolved: bool
    reason: GradeReason
    fail_to_pass: Mapping[str, TestStatus] = field(default_factory=dict)
    pass_to_pass: Mapping[str, TestStatus] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    unnegated: tuple[str, ...] = ()
    bits: int = 0
    weakest_bits: int = 0
    is_verified: bool | None = None
    hacked: bool | None = None
    plan: str = ""
    dropped_paths: tuple[str, ...] = ()
    detail: str = ""
    duration_s: float = 0.0

    @property
    def challenge(self) -> str:
        """A short description of the challenge; "" if no test ran, and in older records."""
        if (self.is_verified or self.resolved) and {*self.levels} - {Level.STRUCTURE}:
            return levels_text(self.levels)
        has_run = bool(self.fail_to_pass or self.pass_to_pass)
        return "not challenged" if has_run and self.is_verified is not None else ""


def levels_text(levels: Mapping[str, int]) -> str:
    """Returns the number of tests at each level of negation, such as ``value 9 · structure 2``."""
    return " · ".join(f"{level} {levels[level]}" for level in Level if level in levels)
