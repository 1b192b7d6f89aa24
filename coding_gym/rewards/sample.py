"""All of a finished episode that a reward may look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from coding_gym.errors import PatchError
from coding_gym.grade import Grade, GradeReason
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.trajectory import Turn

# Nothing that was graded changes the tree, or not in a way that can be believed.
_WITHOUT_CHANGE = (
    GradeReason.EMPTY_PATCH,
    GradeReason.PATCH_NOT_APPLIED,
    GradeReason.TAMPERED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """All of a finished episode that a reward may look at, the gold patch included.

    Attributes:
        task: The task.
        grade: The verdict.
        patch: The whole change, with what grading left out (tests, their configuration).
        graded: The change that was graded; "" where none was, or where it cannot count.
        turns: The policy's turns, without the `Stop` that a trainer may have ended them with.
        schemas: The tools that the policy had, as OpenAI function schemas.
    """

    task: Task
    grade: Grade
    patch: str
    graded: str
    turns: tuple[Turn, ...] = ()
    schemas: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(
        cls,
        task: Task,
        grade: Grade,
        patch: Patch,
        turns: Sequence[Turn] = (),
        schemas: Sequence[Mapping[str, Any]] = (),
    ) -> Self:
        """Makes a sample of what an episode ended with.

        Patches that are empty or do not apply, and those that tampered with the tests, leave
        nothing in ``graded``.
        """
        return cls(
            task=task,
            grade=grade,
            patch="" if grade.reason is GradeReason.TAMPERED else patch.text,
            graded="" if grade.reason in _WITHOUT_CHANGE else _graded(patch, grade),
            turns=tuple(turns),
            schemas=tuple(schemas),
        )

    @property
    def last_reply(self) -> str:
        """What the policy said last, "" where it never did."""
        return self.turns[-1].action if self.turns else ""


def _graded(patch: Patch, grade: Grade) -> str:
    dropped = set(grade.dropped_paths)
    try:
        kept = (f.text for f in patch.files if not dropped & {f.old_path, f.new_path})
        return "".join(kept)
    except PatchError:  # in an image, where a policy can replace git, a text may be anything
        return ""
