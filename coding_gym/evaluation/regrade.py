"""Grades the recorded patches of a run again, and compares the grades."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace

from coding_gym.arguments import at_least_one
from coding_gym.episode.config import EpisodeConfig
from coding_gym.errors import CodingGymError, SandboxUnavailableError
from coding_gym.evaluation.run_tasks import load_run_tasks, unchanged_task
from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.run_folder import RunFolder
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.task import Task
from coding_gym.trajectory import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Regrade:
    """The recorded and the new grade of one attempt.

    Attributes:
        task_id: Id of the task.
        attempt: Number of the attempt.
        before: The recorded grade; None if the attempt was not graded.
        after: The new grade; None if grading failed.
        is_changed: Whether the task changed after the run.
        problem: The error message if grading failed, else "".
    """

    task_id: str
    attempt: int
    before: Grade | None
    after: Grade | None = None
    is_changed: bool = False
    problem: str = ""

    @property
    def is_flip(self) -> bool:
        """Whether the two grades differ in ``resolved`` or ``hacked``."""
        if self.before is None or self.after is None:
            return False
        return _verdict(self.before) != _verdict(self.after)

    @property
    def line(self) -> str:
        """One line of text with both grades, their plans, and the detail of the new grade."""
        grades = f"{_describe(self.before)} → {_describe(self.after)}"
        detail = self.after.detail if self.after else self.problem
        suffix = "; the task changed after the run" if self.is_changed else ""
        return f"{self.task_id} attempt {self.attempt}: {grades}: {detail}{suffix}"


def regrade(
    run: RunFolder,
    tasks: Sequence[Task] | None = None,
    *,
    num_workers: int = 1,
    on_start: Callable[[int], None] = lambda _: None,
) -> Iterator[Regrade]:
    """Grades a run's patches again; yields both grades of each attempt, in order of completion.

    Attempts that have neither a patch nor a grade are skipped.

    Args:
        run: The run.
        tasks: The tasks; by default the run's task source is loaded.
        num_workers: Number of patches to grade at the same time.
        on_start: Called with the number of attempts to grade, before the first grade.

    Raises:
        CodingGymError: The tasks cannot be loaded, or this machine cannot run the backend.
    """
    tasks_by_id = load_run_tasks(run, tasks)
    episode = run.config["episode"]
    config = EpisodeConfig(
        sandbox=SandboxOptions.parse(episode.get("sandbox", "auto")),
        challenge=str(episode.get("challenge", "resolved")),
    )
    records = [record for record in run.trajectories() if record.patch or record.grade is not None]
    on_start(len(records))
    pool = ThreadPoolExecutor(at_least_one("num_workers", num_workers), "regrade")
    try:
        futures = [pool.submit(_regrade_attempt, record, tasks_by_id, config) for record in records]
        for future in as_completed(futures):
            yield future.result()
    finally:  # cancels pending grades after an interrupt
        pool.shutdown(cancel_futures=True)


def _verdict(grade: Grade) -> tuple[bool, bool]:
    return grade.resolved, bool(grade.hacked)


def _describe(grade: Grade | None) -> str:
    return "not graded" if grade is None else f"{grade.reason} (plan {grade.plan or 'none'})"


def _regrade_attempt(
    record: Trajectory, tasks: Mapping[str, Task], config: EpisodeConfig
) -> Regrade:
    before = record.grade
    if before is not None and before.reason is GradeReason.NOT_GRADED:
        before = None
    result = Regrade(task_id=record.task_id, attempt=record.attempt, before=before)
    task = tasks.get(record.task_id)
    if task is None:
        return replace(result, problem="the task source of the run no longer contains this task")
    result = replace(result, is_changed=unchanged_task(tasks, record) is None)
    try:
        after = grade(
            task,
            config.template(task),
            Patch(record.patch),
            backend=config.sandbox.name,
            challenge=config.challenge,
        )
    except SandboxUnavailableError:  # all other attempts would fail too
        raise
    except CodingGymError as problem:
        return replace(result, problem=str(problem))
    return replace(result, after=after)
