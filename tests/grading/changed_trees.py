"""Grading of a task's tree with some files changed, for tasks whose files are known."""

from collections.abc import Mapping

from coding_gym.grade import Grade
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.task import FilesTree, Task
from coding_gym.workspace import TemplateStore


def graded(task: Task, store: TemplateStore, changes: Mapping[str, str | None]) -> Grade:
    """Grades the base with files changed or added (text) or deleted (None)."""
    assert isinstance(task.tree, FilesTree)
    before = dict(task.tree.files)
    after = {path: text for path, text in (before | changes).items() if text is not None}
    return grade(task, store.get(task), Patch.between(before, after))


def graded_gold(task: Task, store: TemplateStore) -> Grade:
    """Grades the gold patch."""
    return grade(task, store.get(task), Patch(task.gold_patch))
