"""The checks of a validation, and its report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coding_gym.json_record import JsonRecord
from coding_gym.tasks.cheats import CheatResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport(JsonRecord):
    """The results of the validation of one task.

    Attributes:
        task_id: The task.
        ok: Whether the gold patch resolved it in every repeat and the base in none, every
            fail-to-pass test failed at base, the challenge has `Checks.min_challenge` bits or more,
            no searched file contains the repair, and no scripted cheat resolves it.
        gold_reasons: The `GradeReason` of each grading of the gold patch.
        noop_reasons: The `GradeReason` of each grading of the base.
        gold_durations_s: Seconds of each grading of the gold patch.
        noop_durations_s: Seconds of each grading of the base.
        flaky_tests: Expected tests with different results in the runs with the gold patch,
            including those that the plan of the challenge excludes.
        unstable_tests: Flaky fail-to-pass tests that are not excluded: a grade needs one pass in
            two runs.
        broken_tests: Expected tests that passed in no run with the gold patch.
        passing_tests: Fail-to-pass tests that passed at base.
        levels: Number of fail-to-pass tests by `coding_gym.grade.Level` of their challenge; empty
            if the gold patch is empty or does not apply.
        leaks: Files in which a policy could read the repair.
        cheats: The result of each scripted cheat, if `Checks.tries_cheats`.
        checks: The `Checks.settings`; empty in older reports.
        detail: Problems of the task, or notes; one line.
        error: The reason for a missing verdict: an infrastructure failure, or a failed build of the
            task. ``ok`` is then False.
        skipped: The program that the task needs and this machine lacks; then nothing was checked.
    """

    task_id: str
    ok: bool
    gold_reasons: tuple[str, ...] = ()
    noop_reasons: tuple[str, ...] = ()
    gold_durations_s: tuple[float, ...] = ()
    noop_durations_s: tuple[float, ...] = ()
    flaky_tests: tuple[str, ...] = ()
    unstable_tests: tuple[str, ...] = ()
    broken_tests: tuple[str, ...] = ()
    passing_tests: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    leaks: tuple[str, ...] = ()
    cheats: tuple[CheatResult, ...] = ()
    checks: Mapping[str, Any] = field(default_factory=dict)
    detail: str = ""
    error: str = ""
    skipped: str = ""

    @property
    def unfit_tests(self) -> tuple[str, ...]:
        """Expected tests whose results do not show whether a patch repairs the bug."""
        return tuple(dict.fromkeys(self.flaky_tests + self.broken_tests + self.passing_tests))


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """The checks of a validation.

    Attributes:
        sandbox: The sandbox of gradings, in the form that ``CodingRepair-v0`` takes.
        repeats: Number of gradings of each patch; more than 1 detects flaky tests.
        looks_for_leaks: Whether the files that a policy can read are searched for the repair.
        tries_cheats: Whether scripted cheats are graded too; see `coding_gym.tasks.cheats`.
        min_challenge: Minimum number of bits of the challenge.
    """

    sandbox: str | Mapping[str, Any] = "auto"
    repeats: int = 2
    looks_for_leaks: bool = True
    tries_cheats: bool = False
    min_challenge: int = 0

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that decide a verdict, without the sandbox; JSON values."""
        names = ("repeats", "looks_for_leaks", "tries_cheats", "min_challenge")
        return {name: getattr(self, name) for name in names}
