"""What is looked at when a task is validated, and what was found out."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from coding_gym.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """What validation found out about one task.

    Attributes:
        task_id: The task.
        ok: Whether the gold patch resolved it in every repeat and the base in none, every
            fail-to-pass test truly failed at base, and the repair cannot be read anywhere.
        gold_reasons: How each grading of the gold patch ended (values of `GradeReason`).
        noop_reasons: How each grading of the base ended.
        template_s: Seconds that the template took; near 0 where it was cached.
        gold_durations_s: Seconds of each grading of the gold patch.
        noop_durations_s: Seconds of each grading of the base.
        flaky_tests: Expected tests that did not end alike in all gradings of the gold patch.
        broken_tests: Expected tests that passed in none of them.
        passing_tests: Fail-to-pass tests that passed at base.
        excluded_tests: Tests that were left out before the task was looked at again.
        leaks: Where a policy could read the repair.
        detail: What is wrong with the task, or worth knowing; one line.
        error: Why there is no verdict: the machinery failed, or the task could not be built. Then
            ``ok`` is False and says nothing about the patches.
        skipped: Why nothing was looked at: a program that the task needs is not on this machine.
        key: Names the task's content and how it was looked at, for `validate`'s ``known``.
    """

    task_id: str
    ok: bool
    gold_reasons: tuple[str, ...] = ()
    noop_reasons: tuple[str, ...] = ()
    template_s: float = 0.0
    gold_durations_s: tuple[float, ...] = ()
    noop_durations_s: tuple[float, ...] = ()
    flaky_tests: tuple[str, ...] = ()
    broken_tests: tuple[str, ...] = ()
    passing_tests: tuple[str, ...] = ()
    excluded_tests: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()
    detail: str = ""
    error: str = ""
    skipped: str = ""
    key: str = ""

    @property
    def unfit_tests(self) -> tuple[str, ...]:
        """Expected tests that say nothing reliable of a repair."""
        return tuple(dict.fromkeys(self.flaky_tests + self.broken_tests + self.passing_tests))

    def to_json(self) -> dict[str, Any]:
        """Returns the report as a JSON object."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ValidationReport":
        """Rebuilds a report from what `to_json` gave."""
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in data.items()
        }
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """How tasks are looked at.

    Attributes:
        sandbox: What to grade in, as ``CodingRepair-v0`` takes it.
        repeats: How often each patch is graded; above 1 finds tests that do not always end alike.
        looks_for_leaks: Whether the repair is looked for in what a policy can read.
        leaves_out_tests: Whether a task with expected tests that are unfit is looked at once more
            without them, where others that the bug breaks are left.
    """

    sandbox: str | Mapping[str, Any] = "auto"
    repeats: int = 2
    looks_for_leaks: bool = True
    leaves_out_tests: bool = False

    def key(self, task: Task) -> str:
        """Names a task's content and these checks."""
        text = json.dumps([task.to_row(), self.sandbox, self.repeats, self.looks_for_leaks])
        return hashlib.sha256(f"{text}{self.leaves_out_tests}".encode()).hexdigest()[:16]
