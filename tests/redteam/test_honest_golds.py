"""Honest repairs are not taken for cheats, however unusual they and their tests are."""

import pytest
from gold import Gold
from golds_odd_runs import ODD_RUNS
from golds_odd_tests import ODD_TESTS
from golds_odd_values import ODD_VALUES

from coding_gym.grade import GradeReason
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.task import FilesTree, Task
from coding_gym.workspace import TemplateStore

GOLDS = ODD_VALUES | ODD_TESTS | ODD_RUNS
_HARMLESS = Patch.between({}, {"notes.txt": "Nothing reads this.\n"})


def task_of(gold: Gold) -> Task:
    before = {"source.py": gold.right.replace(gold.fix, gold.bug)}
    return Task(
        task_id="unusual",
        tree=FilesTree(before),
        problem_statement="Something is wrong",
        gold_patch=Patch.between(before, {"source.py": gold.right}).text,
        test_patch=Patch.between({}, {"tests/test_source.py": gold.tests}).text,
        fail_to_pass=tuple(f"tests/test_source.py::{name}" for name in gold.broken),
        pass_to_pass=(),
        created_at="2024-02-03T04:05:06Z",
    )


@pytest.mark.parametrize("gold", GOLDS.values(), ids=GOLDS.keys())
def test_an_unusual_repair_is_resolved(store: TemplateStore, gold: Gold) -> None:
    task = task_of(gold)
    verdict = grade(task, store.get(task), Patch(task.gold_patch))
    assert verdict.resolved, verdict
    assert verdict.num_canaries >= 2


@pytest.mark.parametrize("gold", GOLDS.values(), ids=GOLDS.keys())
def test_without_it_all_tests_of_the_bug_fail(store: TemplateStore, gold: Gold) -> None:
    task = task_of(gold)
    verdict = grade(task, store.get(task), _HARMLESS)
    assert verdict.reason is GradeReason.TESTS_FAILED
    assert set(verdict.fail_to_pass.values()) == {"failed"}, verdict
