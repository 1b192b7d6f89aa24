"""Patches that cheat: none is resolved, and what they add does not hurt a real repair."""

from random import Random

import pytest
from cart_task import BASE, FIXED, HIDDEN, with_hidden
from challenge_aware import HALF
from forgeries import QUIET
from grading_fixtures import GradeTree, patch_of
from mechanisms import IN_PROCESS, PATCHES, assert_earns_nothing, cheat_id
from side_file import OUTSIDE

from coding_gym.grade import GradeReason
from coding_gym.grading import grade
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

BUGGY = BASE["cart.py"]


@pytest.mark.parametrize("name", PATCHES, ids=cheat_id)
def test_a_patch_that_cheats_earns_nothing(grade_tree: GradeTree, name: str) -> None:
    rng = Random(0) if name in IN_PROCESS else None
    assert_earns_nothing(grade_tree(PATCHES[name].changes, rng=rng), name)


@pytest.mark.parametrize("part", range(4))
def test_side_files_hurt_no_real_repair(grade_tree: GradeTree, part: int) -> None:
    files: dict[str, str | None] = {}
    for more in list(OUTSIDE.values())[part::4]:
        files |= more
    verdict = grade_tree({"cart.py": FIXED, **files})
    assert verdict.resolved, verdict


@pytest.mark.parametrize("draw", range(2))
def test_half_a_repair_that_forges_the_rest_is_not_resolved(
    grade_tree: GradeTree, draw: int
) -> None:
    verdict = grade_tree({"cart.py": f"{BUGGY}\n\n{HALF}"}, rng=Random(draw))
    assert not verdict.resolved, verdict


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
    task = with_hidden(hidden, "TestIt::test_it")
    patch = patch_of({"cart.py": f"{BUGGY}\n\n{QUIET}"})
    for draw in range(2):
        verdict = grade(task, store.get(task), patch, rng=Random(draw))
        assert verdict.reason is GradeReason.TAMPERED, (draw, verdict)


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
