"""Honest repairs are not taken for cheats, however unusual they and their tests are."""

import pytest
from golds import GOLDS, Gold
from made_tasks import made_task

from coding_gym.grade import GradeReason
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

_HARMLESS = Patch.between({}, {"notes.txt": "Nothing reads this.\n"})


def task_of(gold: Gold) -> Task:
    before = {"source.py": gold.right.replace(gold.fix, gold.bug)}
    return made_task(
        "unusual",
        before,
        {"source.py": gold.right},
        {"tests/test_source.py": gold.tests},
        fail_to_pass=tuple(f"tests/test_source.py::{name}" for name in gold.broken_names),
    )


@pytest.mark.parametrize("gold", GOLDS.values(), ids=GOLDS.keys())
def test_an_unusual_repair_resolves_and_its_base_does_not(store: TemplateStore, gold: Gold) -> None:
    task = task_of(gold)
    verdict = grade(task, store.get(task), Patch(task.gold_patch))
    assert verdict.resolved, verdict
    idle = grade(task, store.get(task), _HARMLESS)
    assert idle.reason is GradeReason.TESTS_FAILED
    assert set(idle.fail_to_pass.values()) == {"failed"}, idle


@pytest.mark.parametrize("name", ["Term", "Everything"])
def test_what_the_gold_may_do_excuses_no_forgery(store: TemplateStore, name: str) -> None:
    gold = GOLDS["equality that builds a term of a query"]
    task = task_of(gold)
    before = gold.right.replace(gold.fix, gold.bug)
    forged = (
        f"{before}\n\nclass {name}(str):\n    __hash__ = None\n\n    def __eq__(self, other):\n"
    )
    forged += f"        return True\n\n\ndef column(name):\n    return Column({name}(name))\n"
    cheat = Patch.between({"source.py": before}, {"source.py": forged})
    for _ in range(2):  # the second time with what the first may have taught the grader
        assert grade(task, store.get(task), cheat).reason is GradeReason.TAMPERED
