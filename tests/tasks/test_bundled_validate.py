"""Every shipped task keeps its promise: its gold patch resolves it, its base does not.

Once here; ``coding-gym validate bundled --repeats 5`` is for those who change one.
"""

import pytest

from coding_gym.grading.runners.requirements import missing_runtime
from coding_gym.tasks import load_tasks
from coding_gym.tasks.validation import validate_task
from coding_gym.tasks.validation_report import Checks
from coding_gym.workspace import TemplateStore


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return TemplateStore(folder=tmp_path_factory.mktemp("templates"))


@pytest.mark.parametrize(
    "task", load_tasks("bundled") + load_tasks("polyglot"), ids=lambda task: task.task_id
)
def test_gold_resolves_and_the_base_does_not(task, store):
    if reason := missing_runtime(task):
        pytest.skip(reason)
    report = validate_task(task, store, Checks(repeats=1))
    assert report.error == ""
    assert report.gold_reasons == ("resolved",), report.detail
    assert report.noop_reasons == ("tests_failed",), report.detail
    assert report.ok, report.detail
    assert report.detail == ""  # every test to keep passes at base, too
