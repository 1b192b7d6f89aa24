"""Fixtures that grade changed trees of the task in ``cart_task``; the conftest imports them."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from cart_task import BASE, TASK

from coding_gym.grade import Grade
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.task import FilesTree, Task
from coding_gym.workspace import TemplateStore

Changes = Mapping[str, str | None]
GradeTree = Callable[..., Grade]


def patch_of(changes: Changes, base: Mapping[str, str] = BASE) -> Patch:
    """A change of some files: new content as text, None for a deleted file."""
    after = {path: text for path, text in {**base, **changes}.items() if text is not None}
    return Patch.between(base, after)


def graded(task: Task, store: TemplateStore, changes: Changes) -> Grade:
    """Grades the base of a task whose files are known, with some of them changed."""
    assert isinstance(task.tree, FilesTree)
    return grade(task, store.get(task), patch_of(changes, task.tree.files))


def graded_gold(task: Task, store: TemplateStore) -> Grade:
    """Grades the gold patch."""
    return grade(task, store.get(task), Patch(task.gold_patch))


@pytest.fixture(scope="session")
def store() -> TemplateStore:
    """The store of the test run, in its own cache folder."""
    return TemplateStore()


@pytest.fixture
def grade_tree(store: TemplateStore) -> GradeTree:
    """Grades the base of ``cart_task`` with `Changes`; takes the keywords of `grade`, too."""

    def run(changes: Changes, **options: Any) -> Grade:
        return grade(TASK, store.get(TASK), patch_of(changes), **options)

    return run
