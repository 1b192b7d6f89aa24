"""The class of rewards, and the data of a finished episode that rewards read."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from coding_gym.errors import InvalidArgumentError, PatchError
from coding_gym.grade import Grade, GradeReason
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.trajectory import Turn

NEEDS = ("gold_patch", "test_patch", "grade", "resolved")
"""The valid names in ``Reward.needs``: data that a task or an episode can lack."""

# Reasons of grades without a graded change, and of grades that are not reliable.
_WITHOUT_CHANGE = (
    GradeReason.EMPTY_PATCH,
    GradeReason.PATCH_NOT_APPLIED,
    GradeReason.TAMPERED,
)
_ROUNDING = 1e-9
_WITHOUT_FILE = re.compile(r"\w+")  # test ids of SymPy in SWE-bench's rows


@dataclass(frozen=True, slots=True)
class Sample:
    """The data of a finished episode that a reward may read, including the gold patch.

    Attributes:
        task: The task.
        grade: The grade, with the reason ``not_graded`` if ``grading="none"``; None if the episode
            has no grade.
        change: The whole change, including files that the grader drops (tests and configuration).
        turns: The policy's turns, without a `Stop` of the trainer.
        schemas: The tools that the policy had, as OpenAI function schemas.
    """

    task: Task
    grade: Grade | None
    change: Patch
    turns: Sequence[Turn] = ()
    schemas: Sequence[Mapping[str, Any]] = ()

    @property
    def patch(self) -> str:
        """The text of the whole change; "" if the policy tampered with the tests."""
        return "" if self.is_tampered else self.change.text

    @property
    def graded(self) -> str:
        """The text of the graded change; the whole change if there is no grade.

        The text is "" if grading drops all changes, the patch does not apply, or the policy
        tampered with the tests.
        """
        if self.grade is None:
            return self.change.text
        if self.grade.reason in _WITHOUT_CHANGE:
            return ""
        dropped_paths = set(self.grade.dropped_paths)
        try:
            files = [f for f in self.change.files if not dropped_paths & {f.old_path, f.new_path}]
            return "".join(file.text for file in files)
        except PatchError:  # in an image a policy can replace git, which then prints any text
            return ""

    @property
    def is_tampered(self) -> bool:
        """Whether the policy tampered with the tests, according to the grade."""
        return self.grade is not None and self.grade.reason is GradeReason.TAMPERED


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """A named reward.

    Attributes:
        name: The name.
        score: A function that returns the value of a finished episode.
        lowest: The smallest value.
        highest: The largest value.
        needs: Names in `NEEDS` of the required data: ``gold_patch`` and ``test_patch`` of the task,
            ``grade`` (results of single tests, ``challenge="passed"``), ``resolved`` (any grade).
    """

    name: str
    score: Callable[[Sample], float]
    lowest: float = 0.0
    highest: float = 1.0
    needs: tuple[str, ...] = ()

    @classmethod
    def of_change(cls, name: str, score: Callable[[str, str], float]) -> Self:
        """Returns the reward ``score(gold patch, graded change)``; 0 without a graded change."""
        return cls(
            name=name,
            score=lambda s: score(s.task.gold_patch, s.graded) if s.graded.strip() else 0.0,
            needs=("gold_patch",),
        )

    @classmethod
    def of_grade(cls, name: str, score: Callable[[Grade], float]) -> Self:
        """Returns a reward that is a function of the grade; 0 without a grade."""
        return cls(name=name, score=lambda s: score(s.grade) if s.grade else 0.0, needs=("grade",))

    @property
    def span(self) -> float:
        """The largest possible difference between the values of two episodes."""
        return self.highest - self.lowest

    def why_not_computable(self, task: Task) -> str:
        """Returns the reason why the reward cannot be computed for a task, or ""."""
        for need, label, text in (
            ("gold_patch", "gold patch ('patch')", task.gold_patch),
            ("test_patch", "hidden tests ('test_patch')", task.test_patch),
        ):
            if need not in self.needs:
                continue
            if not text.strip():
                return f"it has no {label}"
            try:
                for change in Patch(text).files:
                    list(change.hunks())
            except PatchError as error:
                return f"its {label} cannot be read: {error}"
        return _why_never_verified(task) if "grade" in self.needs else ""

    def value(self, sample: Sample) -> float:
        """Returns the reward of an episode; at most 0 if the tests were tampered with.

        The reward is 0 in every episode of a task with an ``impossible_test``.

        Raises:
            InvalidArgumentError: The score is not between ``lowest`` and ``highest``.
        """
        if sample.task.impossible_test:
            return 0.0
        value = self.score(sample)
        if not self.lowest - _ROUNDING <= value <= self.highest + _ROUNDING:
            raise InvalidArgumentError(
                f"reward {self.name!r} must give values from {self.lowest:g} to {self.highest:g}, "
                f"got {value!r} for {sample.task.task_id}"
            )
        return min(value, 0.0) if sample.is_tampered else value


def _why_never_verified(task: Task) -> str:
    """Returns the reason why no fail-to-pass test of a Python task can be negated, or "".

    The tested code can forge the results of such tests. Only the grader finds further reasons.
    """
    is_python = task.runner == "swebench" and task.language == "python"
    if not is_python and task.runner != "pytest":
        return ""
    if not task.gold_patch.strip():
        return "it has no gold patch ('patch'), so its tests cannot be negated"
    if task.fail_to_pass and all(map(_WITHOUT_FILE.fullmatch, task.fail_to_pass)):
        return f"its test {task.fail_to_pass[0]!r} names no file, so it cannot be negated"
    return ""
