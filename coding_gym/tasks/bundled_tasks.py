"""The tasks that ship with this package, in Python and in other languages."""

import functools
import importlib.resources
from pathlib import Path

from coding_gym.task import Task
from coding_gym.tasks.folder import manifests, read_task_folder

BUNDLED, POLYGLOT = "bundled", "polyglot"


def bundled_folder() -> Path:
    """Returns the folder of the bundled tasks; it has a subfolder for each program."""
    return Path(str(importlib.resources.files("coding_gym.tasks") / "bundled"))


def read_bundled() -> tuple[Task, ...]:
    """Returns the bundled tasks in Python, sorted by id; reads them once per process."""
    return tuple(task for task in _read_all() if task.language == "python")


def read_polyglot() -> tuple[Task, ...]:
    """Returns the bundled tasks in other languages, sorted by id; reads them once per process."""
    return tuple(task for task in _read_all() if task.language != "python")


@functools.cache
def _read_all() -> tuple[Task, ...]:
    tasks = (read_task_folder(manifest.parent) for manifest in manifests(bundled_folder()))
    return tuple(sorted(tasks, key=lambda task: task.task_id))
