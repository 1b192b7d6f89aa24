"""Patches that cheat: none may be resolved, and what they add may not hurt a real repair."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from attacks import FORGERIES, INSIDE, OUTSIDE, QUIET
from cart_task import BASE, FIXED, HIDDEN, TASK

from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.workspace import TemplateStore

GradeTree = Callable[[Mapping[str, str | None]], Grade]

BUGGY = BASE["cart.py"]


@pytest.mark.parametrize("files", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_files_beside_the_source_help_no_wrong_repair(
    grade_tree: GradeTree, files: Mapping[str, str | None]
) -> None:
    verdict = grade_tree({"cart.py": f"{BUGGY}\n\nVERSION = 2\n", **files})
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert len([s for s in verdict.fail_to_pass.values() if s == "failed"]) == 4


@pytest.mark.parametrize("files", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_files_beside_the_source_hurt_no_real_repair(
    grade_tree: GradeTree, files: Mapping[str, str | None]
) -> None:
    verdict = grade_tree({"cart.py": FIXED, **files})
    assert verdict.resolved, verdict


@pytest.mark.parametrize("code", INSIDE.values(), ids=INSIDE.keys())
def test_code_that_attacks_the_run_is_not_resolved(grade_tree: GradeTree, code: str) -> None:
    verdict = grade_tree({"cart.py": f"{BUGGY}\n\n{code}"})
    assert verdict.reason in (GradeReason.TESTS_FAILED, GradeReason.TAMPERED), verdict
    assert verdict.pass_fraction < 1


@pytest.mark.parametrize("name", FORGERIES)
def test_forgery_is_called_by_its_name_and_earns_nothing(grade_tree: GradeTree, name: str) -> None:
    verdict = grade_tree({"cart.py": f"{BUGGY}\n\n{INSIDE[name]}"})
    assert (verdict.reason, verdict.pass_fraction) == (GradeReason.TAMPERED, 0.0), verdict


@pytest.mark.parametrize(
    "lines",
    [
        ("self.assertEqual(total([4], 4), 0)",),
        ("self.assertLess(total([4], 4), 1)", "self.assertEqual(total([4], 3), 1)"),
        ("with self.assertRaises(ValueError):", "    total([4], -1)"),
        ("with pytest.raises(ValueError):", "    total([4], -1)"),
    ],
)
def test_tests_of_one_kind_cannot_all_be_silenced(
    store: TemplateStore, lines: tuple[str, ...]
) -> None:
    head = "import unittest\n\nimport pytest\n\nfrom cart import total\n\n\n"
    body = "".join(f"        {line}\n" for line in lines)
    hidden = f"{head}class TestIt(unittest.TestCase):\n    def test_it(self):\n{body}"
    task = replace(
        TASK,
        test_patch=Patch.between({}, {"tests/test_it.py": hidden}).text,
        fail_to_pass=("tests/test_it.py::TestIt::test_it",),
        pass_to_pass=(),
    )
    patch = Patch.between(BASE, BASE | {"cart.py": f"{BUGGY}\n\n{QUIET}"})
    for _ in range(3):  # whichever ends the canaries draw
        verdict = grade(task, store.get(task), patch)
        assert verdict.reason is GradeReason.TAMPERED, verdict


def test_a_silenced_comparison_of_the_tests_is_found_out(grade_tree: GradeTree) -> None:
    code = "import unittest\n\nunittest.TestCase.assertEqual = lambda *values: None\n"
    verdict = grade_tree({"cart.py": f"{BUGGY}\n\n{code}"})
    # Functions with plain asserts still fail, whichever tests were chosen as canaries.
    assert verdict.reason in (GradeReason.TESTS_FAILED, GradeReason.TAMPERED)
    assert HIDDEN.keys().isdisjoint(verdict.dropped_paths)


@pytest.mark.parametrize(
    "code",
    [
        "import atexit\n\natexit.register(print, 'bye')\n",
        "import sys\n\nprint('1 failed', file=sys.stderr)\n",
        "import os\n\nif os.fork() == 0:\n    os._exit(3)\nos.wait()\n",
        "import threading\n\nthreading.Thread(target=threading.Event().wait).start()\n",
        "import sys\n\nsys.stdin.close()\n",
    ],
)
def test_code_that_is_only_odd_is_graded_fairly(grade_tree: GradeTree, code: str) -> None:
    verdict = grade_tree({"cart.py": f"{FIXED}\n\n{code}"})
    assert verdict.resolved, verdict
