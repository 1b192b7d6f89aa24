"""The end of an episode: its patch is taken, its sandbox freed, and the patch graded once."""

from dataclasses import dataclass, field

from coding_gym.episode.context import Context
from coding_gym.errors import GradingError, MachineryError, PatchError
from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import WarmStart
from coding_gym.grading import grade as grade_patch
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.trajectory import StopReason
from coding_gym.workspace import diff


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an episode ended.

    Attributes:
        stop_reason: Why; our side's failure while ending takes the place of the first reason.
        patch: The change that was graded.
        grade: The verdict; None where our side failed.
        error: What failed on our side, or "".
    """

    stop_reason: StopReason
    patch: Patch = field(default_factory=Patch)
    grade: Grade | None = None
    error: str = ""


def finish(
    task: Task, context: Context, reason: StopReason, backend: str, warm: WarmStart | None = None
) -> Ending:
    """Ends an episode for a reason that is the policy's or the caller's.

    Args:
        task: The task.
        context: The episode's sandbox; closed.
        reason: Why it ends.
        backend: Name of the backend that the grade uses.
        warm: A sandbox for the grade that was opened before; see `coding_gym.grading.start_ahead`.
    """
    try:
        with context.sandbox as sandbox:
            patch = diff(sandbox, context.template)
    except PatchError as problem:  # the policy made a tree that cannot be put into a patch
        grade = Grade(resolved=False, reason=GradeReason.PATCH_NOT_APPLIED, detail=str(problem))
        return Ending(stop_reason=reason, grade=grade)
    except MachineryError as failure:
        return Ending(stop_reason=StopReason.SANDBOX_ERROR, error=str(failure))
    try:
        grade = grade_patch(task, context.template, patch, backend=backend, warm=warm)
    except GradingError as failure:
        return Ending(stop_reason=StopReason.GRADING_ERROR, patch=patch, error=str(failure))
    except MachineryError as failure:
        return Ending(stop_reason=StopReason.SANDBOX_ERROR, patch=patch, error=str(failure))
    return Ending(stop_reason=reason, patch=patch, grade=grade)
