"""Cheats and wrong repairs that grading does not detect, as the documentation states."""

from dataclasses import replace

import pytest
from forged_checks import forging
from grading_fixtures import BASE, TASK, graded, with_hidden

from coding_gym.task import FilesTree, Task
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

BUGGY = BASE["cart.py"]
# Makes the check of a test fail if an assertion is appended to the test.
READING = forging("'; assert' not in open('tests/test_hidden.py').read()")


def _task_of(test: str) -> Task:
    hidden = f"from pricing import same\n\nfrom cart import total\n\n\ndef test_a():\n    {test}\n"
    return with_hidden(hidden, "test_a")


def _command_task(command: str) -> Task:
    return replace(TASK, runner="command", test_patch="", fail_to_pass=(command,), pass_to_pass=())


def _is_resolved(store: TemplateStore, task: Task, source: str) -> bool:
    return graded(task, store, {"cart.py": source}).resolved


def test_a_patch_recognises_an_appended_failure(store: TemplateStore) -> None:
    """A test without assertions can only be negated by an appended assertion that fails."""
    task = _task_of("[0][total([2], 1) - 1]")
    assert _is_resolved(store, task, f"{BUGGY}\n\n{READING}")


@pytest.mark.parametrize(
    "test",
    ["assert total([10, 5], discount=3) == 12", "same(total([10, 5], discount=3), 12)"],
)
def test_a_patch_does_not_recognise_a_near_miss(store: TemplateStore, test: str) -> None:
    assert not _is_resolved(store, _task_of(test), f"{BUGGY}\n\n{READING}")


def test_a_repair_of_only_the_tested_inputs_resolves(store: TemplateStore) -> None:
    table = (
        "plain = total\n\n\ndef total(prices, discount=0):\n"
        "    return 12 if (prices, discount) == ([10, 5], 3) else plain(prices, discount)\n"
    )
    task = _task_of("assert total([10, 5], discount=3) == 12")
    assert _is_resolved(store, task, f"{BUGGY}\n\n{table}")


def test_a_weak_test_accepts_a_wrong_repair(store: TemplateStore) -> None:
    task = _task_of("assert total([10, 5], discount=3) < 15")
    assert _is_resolved(store, task, "def total(prices, discount=0):\n    return -1\n")


def test_an_exit_with_0_passes_a_command(store: TemplateStore) -> None:
    task = _command_task("python -m pytest -q tests")
    assert not _is_resolved(store, task, BUGGY.replace("sum(prices)", "-1"))
    assert _is_resolved(store, task, "import os\n\nos._exit(0)\n")


def test_a_script_that_only_a_script_names_can_be_changed(store: TemplateStore) -> None:
    before = {"check.sh": "for name in sums lists; do sh $name.sh; done\n", "lists.sh": "false\n"}
    task = replace(_command_task("sh check.sh"), tree=FilesTree(before), gold_patch="")
    assert graded(task, store, {"lists.sh": "true\n"}).resolved
