"""Writes the plans of tasks into their folders, so that the first grade does not make them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coding_gym.errors import InvalidTaskError
from coding_gym.grade import levels_text
from coding_gym.grading import new_plan, plan_key
from coding_gym.grading.runners import get_runner, missing_runtime
from coding_gym.task import Task
from coding_gym.tasks.folder import PLAN, read_folder
from coding_gym.tasks.usable import check_usable
from coding_gym.whole_file import write_whole
from coding_gym.workspace import TemplateStore


def write_plans(folder: Path, *, num_workers: int = 1) -> Iterator[tuple[str, str]]:
    """Runs each task's tests with its gold patch; writes the task's plan next to ``task.toml``.

    Yields the id of each task and the levels of its plan, or the reason for a missing plan.

    Args:
        folder: A task folder, or a folder of task folders.
        num_workers: Number of tasks to plan at the same time.

    Raises:
        InvalidTaskError: A task is malformed, or its tests cannot grade a patch.
        InfrastructureError: An environment cannot be built, or tests cannot be run.
    """
    store = TemplateStore()

    def write(manifest: str, task: Task) -> tuple[str, str]:
        if task.impossible_test or not get_runner(task.runner).negates(task):
            return task.task_id, "needs no plan: the grader does not negate its tests"
        if missing_program := missing_runtime(task):
            return task.task_id, missing_program
        template = store.get(task)
        plan = new_plan(task, template)
        if not plan.is_calibrated:
            problem = "is missing or does not apply, or no expected test passes with it every time"
            return task.task_id, f"the gold patch {problem}"
        write_whole(Path(manifest).with_name(PLAN), plan.to_text(plan_key(task, template)))
        levels = levels_text(plan.counts(task.fail_to_pass))
        return task.task_id, f"{levels} · bits {plan.challenge.num_bits(task.fail_to_pass)}"

    entries = []
    for manifest, task in read_folder(folder):
        if isinstance(task, InvalidTaskError):
            raise task
        check_usable(task, manifest)
        entries.append((manifest, task))
    with ThreadPoolExecutor(num_workers) as pool:
        for future in [pool.submit(write, *entry) for entry in entries]:
            yield future.result()
