"""Every shipped task keeps its promise: its gold patch resolves it, its base does not.

Once here; ``coding-gym validate bundled --repeats 5`` is for those who change one.
"""

import pytest

from coding_gym.grading.runners.requirements import missing_runtime
from coding_gym.task import Task
from coding_gym.tasks import load_tasks
from coding_gym.tasks.validation import validate_task
from coding_gym.tasks.validation_report import Checks
from coding_gym.workspace import TemplateStore

TASKS = {task.task_id: task for task in load_tasks("bundled") + load_tasks("polyglot")}
# A Python task of each difficulty, and three languages; a fast run of the tests validates these.
KINDS = (
    "winnow-last-day",
    "winnow-silent-refusals",
    "postbox-late-ack",
    "signpost-plus-signs",
    "typeset-exact-fit",
    "harbour-begun-days",
)


def assert_valid(task: Task, store: TemplateStore) -> None:
    if reason := missing_runtime(task):
        pytest.skip(reason)
    report = validate_task(task, store, Checks(repeats=1))
    assert report.error == ""
    assert report.gold_reasons == ("resolved",), report.detail
    assert report.noop_reasons == ("tests_failed",), report.detail
    assert report.ok, report.detail
    assert report.detail == ""  # every test to keep passes at base, too


@pytest.mark.parametrize("task_id", KINDS)
def test_gold_resolves_and_the_base_does_not(task_id: str, store: TemplateStore) -> None:
    assert_valid(TASKS[task_id], store)


@pytest.mark.parametrize("task_id", [task_id for task_id in TASKS if task_id not in KINDS])
def test_every_other_task_validates(task_id: str, store: TemplateStore) -> None:
    assert_valid(TASKS[task_id], store)


def test_the_fast_tasks_are_one_of_each_kind() -> None:
    kinds = [TASKS[task_id] for task_id in KINDS]
    assert [task.difficulty for task in kinds[:3]] == ["easy", "medium", "hard"]
    assert [task.language for task in kinds] == ["python"] * 3 + ["javascript", "c", "java"]
