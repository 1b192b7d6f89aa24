"""Mutants of a gold patch, and whether tests catch them."""

from dataclasses import replace

import pytest

from coding_gym.patch import Patch
from coding_gym.task import FilesTree, Task
from coding_gym.tasks.strength import make_mutants, try_mutants
from coding_gym.workspace import TemplateStore

BUGGY = "LIMIT = 10\n\n\ndef clipped(value):\n    return value\n"
FIXED = BUGGY.replace(
    "    return value\n",
    "    lowest = min(value, LIMIT)\n    if lowest < 0 or value == 13:\n        return 0\n"
    "    return lowest\n",
)
WEAK = "from clip import clipped\n\n\ndef test_large():\n    assert clipped(50) == 10\n"
STRONG = WEAK + (
    "\n\ndef test_small():\n    given = (-5, -1, 0, 3, 10, 11, 13)\n"
    "    assert [clipped(n) for n in given] == [0, 0, 0, 3, 10, 10, 0]\n"
)


def made(tests: str) -> Task:
    names = [line[4:].partition("(")[0] for line in tests.splitlines() if line.startswith("def ")]
    return Task(
        task_id="clip",
        tree=FilesTree({"clip.py": BUGGY}),
        problem_statement="clipped(50) is 50",
        gold_patch=Patch.between({"clip.py": BUGGY}, {"clip.py": FIXED}).text,
        test_patch=Patch.between({}, {"test_clip.py": tests}).text,
        fail_to_pass=("test_clip.py::test_large",),
        pass_to_pass=tuple(f"test_clip.py::{name}" for name in names if name != "test_large"),
    )


@pytest.mark.slow
def test_stronger_tests_catch_more(store: TemplateStore) -> None:
    shares = []
    for tests in (WEAK, STRONG):
        task = made(tests)
        num, caught = try_mutants(task, store.get(task), limit=6)
        assert num == 6
        shares.append(caught)
    assert shares[0] < shares[1]


@pytest.mark.slow
def test_mutants_change_what_the_gold_patch_adds_and_are_drawn_alike(store: TemplateStore) -> None:
    task = made(WEAK)
    template = store.get(task)
    every = make_mutants(task, template, limit=1000)
    assert len(every) > 6
    for patch in every:
        text = patch.apply({"clip.py": BUGGY})["clip.py"]
        assert text not in (BUGGY, FIXED)
        assert text.startswith("LIMIT = 10\n\n\ndef clipped(value):\n")
    few = make_mutants(task, template, limit=3)
    assert few == make_mutants(task, template, limit=3)
    assert set(few) < set(every)


@pytest.mark.parametrize("path", ["clip.js", "notes.py"])
def test_what_does_not_parse_as_python_has_none(store: TemplateStore, path: str) -> None:
    gold = Patch.between({path: "a b c\n"}, {path: "a b d\n"})
    task = replace(made(WEAK), tree=FilesTree({path: "a b c\n"}), gold_patch=gold.text)
    assert make_mutants(task, store.get(task), limit=5) == ()
