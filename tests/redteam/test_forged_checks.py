"""Forged outcomes of single assertions succeed with the probability that `Grade.bits` states."""

from dataclasses import replace
from pathlib import Path

import pytest
from forged_checks import GUESSES, LENIENT, READING, REMEMBERING
from grading_fixtures import BASE, FIXED, graded, made_task, patch_of, with_hidden
from reader import accuracy, pairs_of

from coding_gym.grade import GradeReason
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.sandbox import Mount
from coding_gym.task import Task
from coding_gym.tasks import load_tasks
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

BUGGY = BASE["cart.py"]
_HEAD = "import unittest\n\nfrom cart import total\n\n\n"


def _task(num_bits: int) -> Task:
    """Returns a task with one test, whose ``num_bits`` assertions are all bits."""
    prices = [3000 + 37 * n for n in range(num_bits)]
    body = "".join(f"    assert total([{price}, 7], 2) == {price + 5}\n" for price in prices)
    return with_hidden(f"{_HEAD}def test_all():\n{body}", "test_all")


@pytest.mark.parametrize("name", GUESSES)
def test_guesses_of_many_bits_are_not_resolved(store: TemplateStore, name: str) -> None:
    task = _task(24)
    cheat = patch_of({"cart.py": f"{BUGGY}\n\n{GUESSES[name]}"})
    for _ in range(4):
        verdict = grade(task, store.get(task), cheat)
        assert not verdict.resolved
        assert 6 <= verdict.bits == verdict.weakest_bits < 24  # one direction of the error


@pytest.mark.nightly
def test_memory_across_runs_succeeds_at_the_stated_rate(
    store: TemplateStore, tmp_path: Path
) -> None:
    task = _task(6)
    template = store.get(task)
    tmp_path.chmod(0o777)
    memory = Mount(source=tmp_path, target="/memory", writable=True)
    spec = replace(template.spec, mounts=(*template.spec.mounts, memory))
    cheat = patch_of({"cart.py": f"{BUGGY}\n\n{REMEMBERING}"})
    num_resolved = 0
    for _ in range(500):
        (tmp_path / "coins").unlink(missing_ok=True)
        verdict = grade(task, replace(template, spec=spec), cheat, challenge="resolved")
        num_resolved += verdict.resolved
    assert 0 < num_resolved <= 16  # 500 / 2**6 is 7.8; without memory 500 / 2**12


@pytest.mark.parametrize("name", LENIENT)
def test_objects_equal_to_near_values_are_tampering(store: TemplateStore, name: str) -> None:
    source, pairs = LENIENT[name]
    bug, right = ([pair[index] for pair in pairs] for index in (0, 1))
    base = {"source.py": f"def get(number):\n    return {bug}[number]\n"}
    fixed = {"source.py": f"def get(number):\n    return {right}[number]\n"}
    checks = "".join(f"    assert get({n}) == {value!r}\n" for n, value in enumerate(right))
    hidden = {"test_it.py": f"from source import get\n\n\ndef test_all():\n{checks}"}
    task = made_task("lenient", base, fixed, hidden, fail_to_pass=("test_it.py::test_all",))
    template = store.get(task)
    assert grade(task, template, Patch(task.gold_patch)).resolved
    cheat = f"{source}\n\nplain = get\n\n\ndef get(number):\n    return Near(plain(number))\n"
    verdict = grade(task, template, Patch.between(base, {"source.py": base["source.py"] + cheat}))
    assert verdict.reason is GradeReason.TAMPERED, verdict


_BODIES = {
    "a loop": "    for rebate in (1, 2, 3):\n        assert total([9 + rebate], rebate) == 9\n",
    "assertions in a row": "".join(f"    assert total([9], {n}) == {9 - n}\n" for n in (1, 2, 3)),
    "a helper": "".join(f"    check(total([9], {n}), {9 - n})\n" for n in (1, 2, 3)),
}


@pytest.mark.parametrize("name", _BODIES)
def test_repair_that_fails_one_assertion_is_refused(store: TemplateStore, name: str) -> None:
    helper = "def check(value, wanted):\n    assert value == wanted\n\n\n"
    task = with_hidden(f"{_HEAD}{helper}def test_all():\n{_BODIES[name]}", "test_all")
    template = store.get(task)
    assert grade(task, template, Patch(task.gold_patch)).resolved
    wrong = FIXED.replace("- discount", "- (discount if discount != 2 else 5)")
    for _ in range(3):
        assert grade(task, template, patch_of({"cart.py": wrong})).reason is (
            GradeReason.TESTS_FAILED
        )


_SUBTESTS = """\
class TotalTest(unittest.TestCase):
    def test_all(self):
        for rebate in (1, 2, 3):
            with self.subTest(rebate=rebate):
                self.assertEqual(total([9 + rebate], rebate), 9)
"""


@pytest.mark.parametrize(
    ("tests", "test"),
    [(f"def test_all():\n{_BODIES['a loop']}", "test_all"), (_SUBTESTS, "TotalTest::test_all")],
)
@pytest.mark.parametrize("name", ["passes alone", "failures alone"])
def test_forged_loops_and_subtests_do_not_resolve(
    store: TemplateStore, tests: str, test: str, name: str
) -> None:
    task = with_hidden(_HEAD + tests, test)
    template = store.get(task)
    assert grade(task, template, Patch(task.gold_patch)).resolved
    for _ in range(2):
        verdict = grade(task, template, patch_of({"cart.py": f"{BUGGY}\n\n{GUESSES[name]}"}))
        assert not verdict.resolved


@pytest.mark.parametrize(
    ("test", "is_forged"),
    [
        ("assert total([10, 5], discount=3) == 12", False),
        ("same(total([10, 5], discount=3), 12)", False),
        ("[0][total([2], 1) - 1]", True),  # only an appended failure can negate it
    ],
)
def test_reader_of_a_test_recognises_only_an_appended_failure(
    store: TemplateStore, test: str, is_forged: bool
) -> None:
    hidden = f"from pricing import same\n\nfrom cart import total\n\n\ndef test_a():\n    {test}\n"
    task = with_hidden(hidden, "test_a")
    assert graded(task, store, {"cart.py": f"{BUGGY}\n\n{READING}"}).resolved == is_forged


@pytest.mark.nightly
def test_classifier_does_not_find_the_originals_of_bits() -> None:
    """The classifier is trained on the bits of all other projects."""
    pairs = [pair for task in load_tasks() for pair in pairs_of(task)]
    assert len(pairs) > 20
    share, error = accuracy(pairs)
    assert share - 2 * error <= 0.5
    assert share <= 0.55 + error
