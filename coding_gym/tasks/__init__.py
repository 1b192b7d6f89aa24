"""Sources, sampling and validation of tasks."""

from coding_gym.tasks.filters import find_task
from coding_gym.tasks.loading import load_tasks
from coding_gym.tasks.sampling import get_sampler
from coding_gym.tasks.splits import split_tasks

__all__ = ["find_task", "get_sampler", "load_tasks", "split_tasks"]
