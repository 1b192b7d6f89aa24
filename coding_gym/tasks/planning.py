"""Writes the plans of task folders, which the first grade of a task would make otherwise."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coding_gym.errors import InvalidTaskError
from coding_gym.grade import levels_text
from coding_gym.grading import new_plan, plan_key
from coding_gym.grading.runners import missing_runtime
from coding_gym.task import Task
from coding_gym.tasks.folder import PLAN, read_folder
from coding_gym.workspace import TemplateStore


def write_plans(folder: Path, *, num_workers: int = 1) -> Iterator[tuple[str, str]]:
    """Runs the gold patch of each task in a folder, and writes its plan next to its manifest.

    Yields the id of each task and the levels of its plan, or the reason why it gets no plan.

    Args:
        folder: A task folder, or a folder of task folders.
        num_workers: Number of tasks to plan at the same time.

    Raises:
        InvalidTaskError: A task is malformed.
    """
    store = TemplateStore()

    def write(manifest: str, task: Task | InvalidTaskError) -> tuple[str, str]:
        if isinstance(task, InvalidTaskError):
            raise task
        if missing := missing_runtime(task):
            return task.task_id, missing
        template = store.get(task)
        plan = new_plan(task, template)
        if not plan.is_calibrated:
            return task.task_id, "the gold patch does not pass"
        text = plan.to_text(plan_key(task, template))
        Path(manifest).with_name(PLAN).write_text(text, encoding="utf-8")
        levels = levels_text(plan.counts(task.fail_to_pass))
        return task.task_id, f"{levels} · bits {plan.num_bits(task.fail_to_pass)}"

    with ThreadPoolExecutor(num_workers) as pool:
        for future in [pool.submit(write, *entry) for entry in read_folder(folder)]:
            yield future.result()
