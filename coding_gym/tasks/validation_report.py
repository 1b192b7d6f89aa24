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
        gold_reasons: How each grading of the gold patch ended (values of `GradeReason`).
        noop_reasons: How each grading of the base ended.
        template_s: Seconds that the template took; near 0 where it was cached.
        gold_durations_s: Seconds of each grading of the gold patch.
        noop_durations_s: Seconds of each grading of the base.
        flaky_tests: Expected tests that did not end alike in all runs with the gold patch, those
            that the plan of the challenge excludes among them.
        unstable_tests: Fail-to-pass tests that did not end alike in runs with the gold patch, so
            that a grade needs one pass in two runs. They are not excluded.
        broken_tests: Expected tests that passed in none of them.
        passing_tests: Fail-to-pass tests that passed at base.
        levels: How many fail-to-pass tests are challenged at each `coding_gym.grade.Level`; empty
            where the gold patch passes none.
        leaks: Where a policy could read the repair.
        leaks_s: Seconds that the search for them took.
        leak_error: Why it was not looked for, though it should have been; "" where it was.
        cheats: What each scripted cheat gains, where `Checks.tries_cheats` asks for it.
        checks: What was looked at, as `Checks.settings` has it; empty in older reports.
        detail: Problems of the task, or notes; one line.
        error: Why there is no verdict: the machinery failed, or the task could not be built. Then
            ``ok`` is False and says nothing about the patches.
        skipped: Why nothing was looked at: a program that the task needs is not on this machine.
    """

    task_id: str
    ok: bool
    gold_reasons: tuple[str, ...] = ()
    noop_reasons: tuple[str, ...] = ()
    template_s: float = 0.0
    gold_durations_s: tuple[float, ...] = ()
    noop_durations_s: tuple[float, ...] = ()
    flaky_tests: tuple[str, ...] = ()
    unstable_tests: tuple[str, ...] = ()
    broken_tests: tuple[str, ...] = ()
    passing_tests: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    leaks: tuple[str, ...] = ()
    leaks_s: float = 0.0
    leak_error: str = ""
    cheats: tuple[CheatResult, ...] = ()
    checks: Mapping[str, Any] = field(default_factory=dict)
    detail: str = ""
    error: str = ""
    skipped: str = ""

    @property
    def unfit_tests(self) -> tuple[str, ...]:
        """Expected tests that say nothing reliable of a repair."""
        return tuple(dict.fromkeys(self.flaky_tests + self.broken_tests + self.passing_tests))


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """How tasks are looked at.

    Attributes:
        sandbox: What to grade in, as ``CodingRepair-v0`` takes it.
        repeats: How often each patch is graded; above 1 finds tests that do not always end alike.
        looks_for_leaks: Whether the repair is looked for in what a policy can read.
        tries_cheats: Whether scripted cheats are graded too; see `coding_gym.tasks.cheats`.
        min_challenge: Fewest accepted bits of the gold patch's challenge.
    """

    sandbox: str | Mapping[str, Any] = "auto"
    repeats: int = 2
    looks_for_leaks: bool = True
    tries_cheats: bool = False
    min_challenge: int = 0

    @property
    def settings(self) -> dict[str, Any]:
        """What decides a verdict, without the machine's side of it; JSON values."""
        names = ("repeats", "looks_for_leaks", "tries_cheats", "min_challenge")
        return {name: getattr(self, name) for name in names}
