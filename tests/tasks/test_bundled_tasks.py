"""Properties of every bundled task; a few tasks are validated."""

from collections import Counter
from pathlib import Path

import pytest

from coding_gym.grading import Plan, plan_key
from coding_gym.grading.runners import missing_runtime
from coding_gym.patch import Patch
from coding_gym.tasks import load_tasks
from coding_gym.tasks.bundled_tasks import bundled_folder
from coding_gym.tasks.folder import read_folder
from coding_gym.tasks.validation import Checks, validate_task
from coding_gym.workspace import TemplateStore

BY_FOLDER = {Path(where).parent: task for where, task in read_folder(bundled_folder())}


def test_bundled_tasks_are_sorted_and_always_the_same():
    python, others = load_tasks(), load_tasks("polyglot")
    for tasks in (python, others):
        assert [task.task_id for task in tasks] == sorted(task.task_id for task in tasks)
    assert {*python, *others} == set(BY_FOLDER.values())
    assert len(python) + len(others) == len(BY_FOLDER)
    assert load_tasks("bundled") == python
    assert load_tasks("polyglot") == others
    assert {task.language for task in python} == {"python"}
    languages = [task.language for task in others]
    assert {name: languages.count(name) for name in languages} == dict.fromkeys(
        ("java", "javascript", "c", "rust"), 4
    )


def test_every_program_is_in_one_of_two_splits():
    splits = {(task.repo, task.split) for task in BY_FOLDER.values()}
    assert len(splits) == len({repo for repo, _ in splits})
    assert {split for _, split in splits} == {"train", "test"}


def test_each_bundled_task_has_all_fields():
    for folder, task in BY_FOLDER.items():
        assert task.task_id == f"{folder.parent.name}-{folder.name}"
        assert task.difficulty in {"easy", "medium", "hard"}, task.task_id
        assert task.created_at, task.task_id
        assert len(task.fail_to_pass) >= 2, task.task_id
        assert task.pass_to_pass, task.task_id
        assert len(set(task.expected_tests)) == len(task.fail_to_pass + task.pass_to_pass), task
        assert (task.interpreter, task.install_commands) == ("base", ()), task.task_id


def test_gold_patches_change_sources_only_and_hidden_files_are_tests():
    for task in BY_FOLDER.values():
        gold, hidden = Patch(task.gold_patch).paths, Patch(task.test_patch).paths
        assert gold, task.task_id
        assert not [path for path in gold if path.startswith(("tests/", "conftest.py"))], task
        assert hidden, task.task_id
        assert all(path.startswith("tests/") for path in hidden), task.task_id


def test_fail_to_pass_tests_are_negated_and_most_by_values():
    plans = [(task, Plan.from_text(task.grading_plan)) for task in load_tasks()]
    levels = sum((Counter(plan.counts(task.fail_to_pass)) for task, plan in plans), Counter())
    assert levels["structure"] == 0
    assert levels["value"] >= 2 / 3 * levels.total()


def test_no_statement_names_a_hidden_test():
    for task in BY_FOLDER.values():
        names = {test.rpartition("::")[2].partition("[")[0] for test in task.fail_to_pass}
        assert not [name for name in names if name in task.problem_statement], task.task_id


TASKS = {task.task_id: task for task in load_tasks("bundled") + load_tasks("polyglot")}
# Python tasks of each difficulty; the fast tests validate the first ones.
FAST = ("ledgerline-month-overlap", "winnow-silent-refusals")
SLOW = ("cronwise-working-days", "cellar-cooling-curve", "postbox-late-ack", "quill-half-a-macro")


@pytest.mark.parametrize(
    "task_id",
    [
        *FAST,
        *(pytest.param(task_id, marks=pytest.mark.slow) for task_id in SLOW),
        *(
            pytest.param(task_id, marks=pytest.mark.nightly)
            for task_id in sorted(TASKS.keys() - {*FAST, *SLOW})
        ),
    ],
)
def test_gold_resolves_and_the_base_does_not(task_id: str, store: TemplateStore) -> None:
    task = TASKS[task_id]
    if reason := missing_runtime(task):
        pytest.skip(reason)
    report = validate_task(task, store, Checks(repeats=1))
    assert report.error == ""
    assert report.gold_reasons == ("resolved",), report.detail
    assert report.noop_reasons == ("tests_failed",), report.detail
    assert report.ok, report.detail
    assert report.detail == ""  # every test to keep passes at base, too
    if task.language != "python":
        return
    plan = Plan.from_text(task.grading_plan, plan_key(task, store.get(task)))
    assert plan is not None, "stale: coding-gym tasks plan coding_gym/tasks/bundled"
    assert (plan.is_calibrated, plan.counts(task.fail_to_pass)) == (True, report.levels)
