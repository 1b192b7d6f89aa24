"""What grading cannot find out, kept here so that the documentation stays true."""

from dataclasses import replace

import pytest
from challenge_aware import READING, SPARING
from grading_fixtures import BASE, TASK, graded, with_hidden

from coding_gym.task import FilesTree, Task
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

BUGGY = BASE["cart.py"]
# Spares tests whose last lines fail by themselves, which no test of a project does.
CONSTANT_ENDS = (
    READING
    + """\
def fails_by_itself(path, name):
    for node, _, _ in functions(path):
        last = node.body[-1]
        inner = last.finalbody if isinstance(last, ast.Try) else node.body[-2:]
        for start in (0, 1):
            module = ast.Module(inner[start:], [])
            try:
                exec(compile(module, 'x', 'exec'), {})
            except AssertionError:
                if node.name == name:
                    return True
            except Exception:
                continue
    return False


"""
    + SPARING.format("return begins_like_another(path, name) or fails_by_itself(path, name)")
)


def _task_of(test: str) -> Task:
    hidden = f"from pricing import same\n\nfrom cart import total\n\n\ndef test_a():\n    {test}\n"
    return with_hidden(hidden, "test_a")


def _command_task(command: str) -> Task:
    return replace(TASK, runner="command", test_patch="", fail_to_pass=(command,), pass_to_pass=())


def _is_resolved(store: TemplateStore, task: Task, source: str) -> bool:
    return graded(task, store, {"cart.py": source}).resolved


def test_a_failing_end_gives_itself_away(store: TemplateStore) -> None:
    """Where no check is executed on every path, a failing statement is all that can be added."""
    task = _task_of("for one in range(total([2], 1)):\n        assert total([one], one) == 0")
    assert _is_resolved(store, task, f"{BUGGY}\n\n{CONSTANT_ENDS}")


@pytest.mark.parametrize(
    "test",
    ["assert total([10, 5], discount=3) == 12", "same(total([10, 5], discount=3), 12)"],
)
def test_a_check_that_asks_for_another_value_does_not(store: TemplateStore, test: str) -> None:
    assert not _is_resolved(store, _task_of(test), f"{BUGGY}\n\n{CONSTANT_ENDS}")


def test_a_repair_of_the_tested_inputs_alone_is_a_repair(store: TemplateStore) -> None:
    table = (
        "plain = total\n\n\ndef total(prices, discount=0):\n"
        "    return 12 if (prices, discount) == ([10, 5], 3) else plain(prices, discount)\n"
    )
    task = _task_of("assert total([10, 5], discount=3) == 12")
    assert _is_resolved(store, task, f"{BUGGY}\n\n{table}")


def test_a_test_that_asks_for_little_gets_little(store: TemplateStore) -> None:
    task = _task_of("assert total([10, 5], discount=3) < 15")
    assert _is_resolved(store, task, "def total(prices, discount=0):\n    return -1\n")


def test_an_exit_with_0_passes_a_command(store: TemplateStore) -> None:
    task = _command_task("python -m pytest -q tests")
    assert not _is_resolved(store, task, BUGGY.replace("sum(prices)", "-1"))
    assert _is_resolved(store, task, "import os\n\nos._exit(0)\n")


def test_a_script_that_only_a_script_names_is_the_policys(store: TemplateStore) -> None:
    before = {"check.sh": "for one in sums lists; do sh $one.sh; done\n", "lists.sh": "false\n"}
    task = replace(_command_task("sh check.sh"), tree=FilesTree(before), gold_patch="")
    assert graded(task, store, {"lists.sh": "true\n"}).resolved
