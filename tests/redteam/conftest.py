"""A way to grade a changed tree of the task that is attacked."""

from collections.abc import Callable, Mapping

import pytest
from cart_task import BASE, TASK

from coding_gym.grade import Grade
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.workspace import TemplateStore

GradeTree = Callable[[Mapping[str, str | None]], Grade]


@pytest.fixture(scope="session")
def store() -> TemplateStore:
    return TemplateStore()


@pytest.fixture
def grade_tree(store: TemplateStore) -> GradeTree:
    """Grades the base with some files changed (text), added (text) or deleted (None)."""

    def run(changes: Mapping[str, str | None]) -> Grade:
        after = {p: t for p, t in (BASE | changes).items() if t is not None}
        return grade(TASK, store.get(TASK), Patch.between(BASE, after))

    return run
