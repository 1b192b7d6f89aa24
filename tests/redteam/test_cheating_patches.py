"""Patches that cheat do not resolve the task."""

from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

import pytest
from cheats import FORGED, IN_PROCESS, PATCHES, SIDE_FILES, cheat_params
from forged_checks import forging
from forgeries import QUIET
from golds import GOLDS, task_of
from grading_fixtures import BASE, FIXED, TASK, GradeTree, graded, patch_of, with_hidden

from coding_gym.grade import GradeReason
from coding_gym.grading import grade
from coding_gym.grading.report import TestRun
from coding_gym.grading.tree import TestTree
from coding_gym.patch import Patch
from coding_gym.rewards import fraction_passed
from coding_gym.sandbox import Sandbox
from coding_gym.task import FilesTree
from coding_gym.workspace import TemplateStore

BUGGY = BASE["cart.py"]
FAILS = (GradeReason.TESTS_FAILED, GradeReason.TAMPERED)


@pytest.mark.parametrize("name", cheat_params(PATCHES))
def test_cheating_patch_earns_nothing(grade_tree: GradeTree, name: str) -> None:
    rng = Random(0) if name in IN_PROCESS else None
    verdict = grade_tree(PATCHES[name], rng=rng)
    assert not verdict.resolved
    assert verdict.reason in (FAILS if name in FORGED else FAILS[:1]), verdict
    if verdict.reason is GradeReason.TAMPERED:
        assert fraction_passed(verdict) == 0, verdict
    if name in SIDE_FILES:  # all hidden tests ran
        assert list(verdict.fail_to_pass.values()) == ["failed"] * 4, verdict


@pytest.mark.slow
def test_forged_pass_to_pass_tests_are_refused(grade_tree: GradeTree) -> None:
    code = forging("'count' in text or not failure[0]")
    broken = FIXED.replace("len(prices)", "len(prices) + 1")
    assert grade_tree({"cart.py": f"{broken}\n\n{code}"}).reason in FAILS


def test_forgery_in_a_repeated_run_is_tampering(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert grade(TASK, store.get(TASK), Patch(TASK.gold_patch)).resolved  # makes the plan
    run, runs = TestTree.run, count()

    def edited(*arguments: Any, **options: Any) -> TestRun:
        result = run(*arguments, **options)
        result.is_edited = next(runs) == 1
        return result

    monkeypatch.setattr(TestTree, "run", edited)
    broken = patch_of({"cart.py": FIXED.replace("len(prices)", "len(prices) + 1")})
    assert grade(TASK, store.get(TASK), broken).reason is GradeReason.TAMPERED


def test_large_files_in_place_of_tests_are_not_read(
    grade_tree: GradeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    read = Sandbox.read_file

    def read_file(*arguments: Any, **options: Any) -> bytes:
        data = read(*arguments, **options)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(Sandbox, "read_file", read_file)
    code = "import os\n\nos.truncate('tests/test_cart.py', 1 << 24)\n"
    assert grade_tree({"cart.py": f"{FIXED}\n\n{code}"}).reason is GradeReason.TAMPERED
    assert max(sizes) < 1 << 16


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines",
    [
        ("self.assertEqual(total([4], 4), 0)",),
        ("self.assertLess(total([4], 4), 1)", "self.assertEqual(total([4], 3), 1)"),
        ("with self.assertRaises(ValueError):", "    total([4], -1)"),
        ("with pytest.raises(ValueError):", "    total([4], -1)"),
    ],
)
def test_silenced_assertions_do_not_resolve(store: TemplateStore, lines: tuple[str, ...]) -> None:
    head = "import unittest\n\nimport pytest\n\nfrom cart import total\n\n\n"
    body = "".join(f"        {line}\n" for line in lines)
    hidden = f"{head}class TestIt(unittest.TestCase):\n    def test_it(self):\n{body}"
    task = with_hidden(hidden, "TestIt::test_it")
    repaired = FIXED.replace(
        "    return sum", "    if discount < 0:\n        raise ValueError\n    return sum"
    )
    task = replace(task, gold_patch=patch_of({"cart.py": repaired}).text)
    assert grade(task, store.get(task), Patch(task.gold_patch)).is_verified
    verdict = grade(task, store.get(task), patch_of({"cart.py": f"{BUGGY}\n\n{QUIET}"}))
    assert verdict.reason in FAILS, verdict


@pytest.mark.slow
def test_unusual_gold_values_do_not_hide_forgery(store: TemplateStore) -> None:
    gold = GOLDS["equality that builds a term of a query"]
    task = task_of(gold)
    before = gold.right.replace(gold.fix, gold.bug)
    forged = (
        f"{before}\n\nclass Term(str):\n    __hash__ = None\n\n    def __eq__(self, other):\n"
        "        return True\n\n\ndef column(name):\n    return Column(Term(name))\n"
    )
    cheat = Patch.between({"source.py": before}, {"source.py": forged})
    for _ in range(2):  # the second grade uses caches that the first grade filled
        assert grade(task, store.get(task), cheat).reason is GradeReason.TAMPERED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "path"),
    [
        ('"examples/total.txt"', "examples/total.txt"),
        ('next(Path("examples").rglob("t*.*"))', "examples/deep/total.txt"),
        ('"examples" / name', "examples/total.txt"),
        ('"examples/total.py"', "examples/total.py"),
    ],
)
def test_changes_of_data_that_tests_read_are_dropped(
    store: TemplateStore, where: str, path: str
) -> None:
    base = BASE | {path: "12"}
    hidden = (
        "from pathlib import Path\n\nfrom cart import total\n\n\ndef test_total():\n"
        f'    name = "total" + ".txt"\n    wanted = int((Path() / {where}).read_text())\n'
        "    assert total([10, 5], 3) == wanted\n"
    )
    task = replace(with_hidden(hidden, "test_total"), tree=FilesTree(base))
    forged = {path: "18", "cart.py": f"{BUGGY}\n"}
    verdict = graded(task, store, forged)
    assert (verdict.resolved, verdict.dropped_paths) == (False, (path,))
    assert graded(task, store, {**forged, "cart.py": FIXED}).resolved
    gold = patch_of({**forged, "cart.py": FIXED}, base).text  # changes the data, too
    changes = {"cart.py": f"{FIXED}\n", path: "12"}
    assert not graded(replace(task, gold_patch=gold), store, changes).dropped_paths
