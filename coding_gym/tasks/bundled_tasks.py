"""The tasks that come with the package."""

import functools
import importlib.resources
from pathlib import Path

from coding_gym.task import Task
from coding_gym.tasks.folder import read_folder


def bundled_folder() -> Path:
    """Returns the folder of the bundled programs, one folder each."""
    return Path(str(importlib.resources.files("coding_gym.tasks") / "bundled"))


@functools.cache
def read_bundled() -> tuple[Task, ...]:
    """Returns every bundled task in the order of ids; read once per process."""
    tasks = (task for _, task in read_folder(bundled_folder()))
    return tuple(sorted(tasks, key=lambda task: task.task_id))
