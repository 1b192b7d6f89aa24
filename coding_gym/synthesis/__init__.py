"""Makes tasks from working projects, by mutation or from git history."""

from coding_gym.synthesis.history import tasks_from_history
from coding_gym.synthesis.pipeline import synthesize
from coding_gym.synthesis.progress import Progress
from coding_gym.synthesis.project import Project, copy_project
from coding_gym.synthesis.writing import write_rows

__all__ = [
    "Progress",
    "Project",
    "copy_project",
    "synthesize",
    "tasks_from_history",
    "write_rows",
]
