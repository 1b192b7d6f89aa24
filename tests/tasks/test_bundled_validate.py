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
# Two Python tasks of each difficulty; the fast tests validate these.
FAST = (
    "ledgerline-month-overlap",
    "cronwise-working-days",
    "winnow-silent-refusals",
    "cellar-cooling-curve",
    "postbox-late-ack",
    "quill-half-a-macro",
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


@pytest.mark.parametrize("task_id", FAST)
def test_gold_resolves_and_the_base_does_not(task_id: str, store: TemplateStore) -> None:
    assert_valid(TASKS[task_id], store)


@pytest.mark.parametrize("task_id", [task_id for task_id in TASKS if task_id not in FAST])
def test_every_other_task_validates(task_id: str, store: TemplateStore) -> None:
    assert_valid(TASKS[task_id], store)


def test_the_fast_tasks_are_two_of_each_difficulty() -> None:
    difficulties = [TASKS[task_id].difficulty for task_id in FAST]
    assert difficulties == ["easy"] * 2 + ["medium"] * 2 + ["hard"] * 2
    assert {TASKS[task_id].language for task_id in FAST} == {"python"}
