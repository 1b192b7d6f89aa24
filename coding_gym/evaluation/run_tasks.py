"""Loads the tasks of a run, and finds the task of a record."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from coding_gym.episode.config import task_digest
from coding_gym.errors import InvalidArgumentError, UnknownTaskError
from coding_gym.run_folder import ROWS, RunFolder
from coding_gym.task import Task
from coding_gym.tasks import load_tasks
from coding_gym.trajectory import Trajectory


def load_run_tasks(run: RunFolder, tasks: Sequence[Task] | None = None) -> dict[str, Task]:
    """Returns the tasks of a run by id, except tasks that the source no longer contains.

    Args:
        run: The run.
        tasks: The tasks; by default the run's task source is loaded.

    Raises:
        CodingGymError: The task source cannot be loaded, or contains no task of the run.
    """
    return {task.task_id: task for task in (_load(run) if tasks is None else tasks)}


def unchanged_task(tasks: Mapping[str, Task], record: Trajectory) -> Task | None:
    """Returns the task of a record; None if the task is missing, or changed after the run."""
    task = tasks.get(record.task_id)
    digest = record.settings.get("task_digest")  # None in records of older versions
    return None if task is None or digest not in (None, task_digest(task)) else task


def _load(run: RunFolder) -> Sequence[Task]:
    source = {name: value for name, value in run.config["tasks"].items() if name != "digest"}
    source["task_ids"] = source["task_ids"] or None  # recorded episodes: all tasks of the source
    if source["source"] == ROWS:
        raise InvalidArgumentError(
            f"{run.path} does not contain its tasks, which were passed as a list; pass the list "
            "again in Python: report(run, tasks=...) or regrade(run, tasks=...)"
        )
    try:
        return load_tasks(**source, needs_tests=False)
    except UnknownTaskError:
        tasks: list[Task] = []
        for task_id in sorted(dict(run.keys())):  # the tasks with a verdict
            with suppress(UnknownTaskError):
                tasks += load_tasks(**source | {"task_ids": task_id}, needs_tests=False)
        if not tasks:
            raise
        return tasks
