"""Patches that cheat: none is resolved, and what they add does not hurt a real repair."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from beside import OUTSIDE
from cart_task import BASE, FIXED, HIDDEN, TASK
from forged_values import FORGED_VALUES
from forgeries import FORGERIES, QUIET
from inside import INSIDE
from knowing import HALF, KNOWING

from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import grade, supervision, tries
from coding_gym.grading.canaries import Turned
from coding_gym.patch import Patch
from coding_gym.workspace import TemplateStore

GradeTree = Callable[[Mapping[str, str | None]], Grade]

BUGGY = BASE["cart.py"]
FORGED = FORGERIES | FORGED_VALUES


def test_the_real_repair_is_resolved(grade_tree: GradeTree) -> None:
    verdict = grade_tree({"cart.py": FIXED})
    assert (verdict.resolved, verdict.num_canaries) == (True, 3), verdict


@pytest.mark.parametrize("files", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_files_beside_the_source_help_no_wrong_repair(
    grade_tree: GradeTree, files: Mapping[str, str | None]
) -> None:
    verdict = grade_tree({"cart.py": f"{BUGGY}\n\nVERSION = 2\n", **files})
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert len([s for s in verdict.fail_to_pass.values() if s == "failed"]) == 4


@pytest.mark.parametrize("part", range(4))
def test_files_beside_the_source_hurt_no_real_repair(grade_tree: GradeTree, part: int) -> None:
    files: dict[str, str | None] = {}
    for more in list(OUTSIDE.values())[part::4]:
        files |= more
    verdict = grade_tree({"cart.py": FIXED, **files})
    assert verdict.resolved, verdict


@pytest.mark.parametrize("code", INSIDE.values(), ids=INSIDE.keys())
def test_code_that_attacks_the_run_passes_no_test_of_the_bug(
    grade_tree: GradeTree, code: str
) -> None:
    verdict = grade_tree({"cart.py": f"{BUGGY}\n\n{code}"})
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict


@pytest.mark.parametrize("code", FORGED.values(), ids=FORGED.keys())
def test_forgery_is_called_by_its_name_and_earns_nothing(grade_tree: GradeTree, code: str) -> None:
    verdict = grade_tree({"cart.py": f"{BUGGY}\n\n{code}"})
    assert (verdict.reason, verdict.pass_fraction) == (GradeReason.TAMPERED, 0.0), verdict


@pytest.mark.parametrize("code", KNOWING.values(), ids=KNOWING.keys())
def test_forgery_that_spares_the_canaries_is_found_out_by_tests_that_must_fail(
    grade_tree: GradeTree, code: str
) -> None:
    verdict = grade_tree({"cart.py": f"{BUGGY}\n\n{code}"})
    assert (verdict.reason, verdict.pass_fraction) == (GradeReason.TAMPERED, 0.0), verdict


@pytest.mark.parametrize(
    "name", ["copies spared by their names", "equality that looks at its caller"]
)
def test_without_those_it_would_be_resolved(
    grade_tree: GradeTree, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(tries, "contradict", lambda *_: Turned())
    files = {"cart.py": f"{BUGGY}\n\n{KNOWING[name]}"}
    assert any(grade_tree(files).resolved for _ in range(8))  # whichever tests the canaries copy


@pytest.mark.parametrize("draw", range(2))
def test_half_a_repair_that_forges_the_rest_is_not_resolved(
    grade_tree: GradeTree, draw: int
) -> None:
    verdict = grade_tree({"cart.py": f"{BUGGY}\n\n{HALF}"})
    assert not verdict.resolved, (draw, verdict)


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
    for _ in range(2):  # whichever ends the canaries draw
        verdict = grade(task, store.get(task), patch)
        assert verdict.reason is GradeReason.TAMPERED, verdict


def test_a_silenced_comparison_of_the_tests_is_found_out(grade_tree: GradeTree) -> None:
    code = "import unittest\n\nunittest.TestCase.assertEqual = lambda *values: None\n"
    verdict = grade_tree({"cart.py": f"{BUGGY}\n\n{code}"})
    # Functions with plain asserts still fail, whichever tests were chosen as canaries.
    assert verdict.reason in (GradeReason.TESTS_FAILED, GradeReason.TAMPERED)
    assert HIDDEN.keys().isdisjoint(verdict.dropped_paths)


def test_a_stopped_supervisor_only_takes_time(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "_MARGIN_S", 0.5)
    stop = "import os, signal\n\nos.kill(os.getppid(), signal.SIGSTOP)\nos._exit(0)\n"
    task = replace(TASK, grading_timeout_s=1.0)
    verdict = grade(task, store.get(task), Patch.between(BASE, BASE | {"cart.py": stop}))
    # It has hardly begun where the machine is busy.
    assert verdict.reason in (GradeReason.TIMEOUT, GradeReason.TESTS_FAILED), verdict


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
