"""Grades the recorded patches of a run again, without a model, and names verdicts that differ."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import Any

from coding_gym.arguments import at_least_one
from coding_gym.episode.config import task_digest
from coding_gym.errors import CodingGymError, SandboxUnavailableError
from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.rollout import RunFolder
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.task import Task
from coding_gym.tasks import load_tasks
from coding_gym.trajectory import Trajectory
from coding_gym.workspace import TemplateStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Regrade:
    """A recorded verdict and the one of today.

    Attributes:
        task_id: The task.
        attempt: Number of the attempt.
        before: The recorded grade, whose ``plan`` names the challenge; None where there was none.
        after: The new grade; None where grading failed, which ``problem`` explains.
        is_changed: Whether the task is another one than when it was recorded.
        problem: Why the patch could not be graded again.
    """

    task_id: str
    attempt: int
    before: Grade | None
    after: Grade | None = None
    is_changed: bool = False
    problem: str = ""

    @property
    def is_flip(self) -> bool:
        """Whether the verdicts differ in what is rewarded or counted."""
        if self.before is None or self.after is None:
            return False
        return _counted(self.before) != _counted(self.after)

    @property
    def line(self) -> str:
        """One line for people: the verdicts, their plans, and why they may differ."""
        text = (
            f"{self.task_id} attempt {self.attempt}: {_named(self.before)} → {_named(self.after)}"
        )
        detail = self.after.detail if self.after else self.problem
        return f"{text}: {detail}" + "; the task has changed since the run" * self.is_changed


def regrade(
    run: RunFolder,
    tasks: Sequence[Task] | None = None,
    *,
    sandbox: str | Mapping[str, Any] | None = None,
    num_workers: int = 1,
    on_result: Callable[[Regrade], None] = lambda _: None,
) -> tuple[Regrade, ...]:
    """Grades the patches of a run again and returns both verdicts, in the order of the records.

    Attempts that have neither a patch nor a grade are skipped.

    Args:
        run: The run.
        tasks: The tasks; by default all of the source that the run's settings name.
        sandbox: What to grade in, as ``CodingRepair-v0`` takes it; by default as the run did.
        num_workers: Patches that are graded at one time.
        on_result: Called in the calling thread with each result as soon as it is there.

    Raises:
        CodingGymError: The tasks cannot be loaded, or this machine cannot run the backend.
    """
    if tasks is None:  # one that is missing is a problem of its attempts alone
        source = run.config["tasks"]
        names = source.keys() - {"digest", "task_ids"}
        tasks = load_tasks(**{name: source[name] for name in names}, needs_tests=False)
    known = {task.task_id: task for task in tasks}
    episode = run.config["episode"]
    options = SandboxOptions.parse(sandbox or episode.get("sandbox", "auto"))
    challenge = str(episode.get("challenge", "resolved"))
    store = TemplateStore(options.name)

    def judge(task: Task, patch: Patch) -> Grade:
        template = store.get(task)
        template = replace(template, spec=options.applied(template.spec))
        return grade(task, template, patch, backend=options.name, challenge=challenge)

    records = [record for record in run.trajectories() if record.patch or record.grade is not None]
    pool = ThreadPoolExecutor(at_least_one("num_workers", num_workers), "regrade")
    try:
        futures = [
            pool.submit(_again, record, known.get(record.task_id), judge) for record in records
        ]
        for future in as_completed(futures):
            on_result(future.result())
        return tuple(future.result() for future in futures)
    finally:  # after an interrupt only the grades in progress are waited for
        pool.shutdown(cancel_futures=True)


def _counted(grade: Grade) -> tuple[bool, bool]:
    return grade.resolved, bool(grade.hacked)


def _named(grade: Grade | None) -> str:
    return "not graded" if grade is None else f"{grade.reason} (plan {grade.plan or 'none'})"


def _again(
    record: Trajectory,
    task: Task | None,
    judge: Callable[[Task, Patch], Grade],
) -> Regrade:
    before = record.grade
    if before is not None and before.reason is GradeReason.NOT_GRADED:
        before = None
    result = Regrade(task_id=record.task_id, attempt=record.attempt, before=before)
    if task is None:
        return replace(result, problem="the source of the run has no such task any more")
    is_changed = record.settings.get("task_digest") not in (None, task_digest(task))
    result = replace(result, is_changed=is_changed)
    try:
        after = judge(task, Patch(record.patch))
    except SandboxUnavailableError:  # true of every task
        raise
    except CodingGymError as problem:
        return replace(result, problem=str(problem))
    return replace(result, after=after)
