"""Runs that confirm a repair cost an honest patch only time; forged patches earn nothing."""

from dataclasses import replace
from random import Random
from unittest import mock

import pytest
from cart_task import BASE, FIXED, TASK, with_hidden
from grading_fixtures import GradeTree
from mechanisms import PATCHES

from coding_gym.grade import GradeReason
from coding_gym.grading import grade, tries
from coding_gym.grading.canaries import Turned
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.task import FilesTree
from coding_gym.workspace import TemplateStore

_PARAMETERS = """\
import pytest

from cart import total


@pytest.mark.parametrize("discount", [1, 2, 3, 4])
def test_total(discount):
    wanted = 9 - discount
    assert total([9], discount) == wanted
"""


def _patch(source: str) -> Patch:
    return Patch.between(BASE, BASE | {"cart.py": source})


@pytest.mark.parametrize("draw", range(3))
def test_a_repair_of_some_parameters_is_no_forgery(store: TemplateStore, draw: int) -> None:
    """What fails with some parameters passes with these when it is turned."""
    task = with_hidden(_PARAMETERS, *(f"test_total[{number}]" for number in range(1, 5)))
    half = FIXED.replace("- discount", "- min(discount, 2)")
    verdict = grade(task, store.get(task), _patch(half), rng=Random(draw))
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert verdict.pass_fraction == 0.5


@pytest.mark.parametrize("draw", range(2))
def test_parameters_expected_to_fail_are_no_forgery(store: TemplateStore, draw: int) -> None:
    hidden = _PARAMETERS.replace("[1, 2, 3, 4]", "[1, 2, -3]").replace(
        "9 - discount", "9 - abs(discount)"
    )
    task = with_hidden(hidden, "test_total[1]", "test_total[2]")
    verdict = grade(task, store.get(task), Patch(TASK.gold_patch), rng=Random(draw))
    assert verdict.resolved, verdict


def test_tests_in_the_file_that_is_repaired_are_those_of_the_repair(store: TemplateStore) -> None:
    """As in Rust: the gold patch changes the file that holds the tests, and they stay in it."""
    tests = (
        "\n\ndef test_total():\n    assert total([10, 5], 3) == 12\n"
        "\n\ndef test_count():\n    assert count([1]) == 1\n"
    )
    base = BASE | {"cart.py": BASE["cart.py"] + tests}
    gold = Patch.between({"cart.py": base["cart.py"]}, {"cart.py": FIXED + tests})
    task = replace(
        TASK,
        tree=FilesTree(base),
        test_patch="",
        gold_patch=gold.text,
        fail_to_pass=("cart.py::test_total",),
        pass_to_pass=("cart.py::test_count",),
    )
    verdict = grade(task, store.get(task), gold)
    assert verdict.resolved, verdict
    half = Patch.between(base, base | {"cart.py": base["cart.py"] + "\n\nVERSION = 2\n"})
    assert grade(task, store.get(task), half).reason is GradeReason.TESTS_FAILED


_TOGETHER = {
    "inherited": (
        "from cart import total\n\n\nclass TestBase:\n    price = 9\n\n"
        "    def test_total(self):\n        assert total([self.price], 2) == self.price - 2\n\n\n"
        "class TestOther(TestBase):\n    price = 5\n",
        ("TestBase::test_total", "TestOther::test_total"),
    ),
    "one after the other": (
        "import pytest\n\nfrom cart import total\n\ndone = []\n\n\n"
        "def test_first():\n    assert total([9], 2) == 7\n    done.append(1)\n\n\n"
        "def test_second():\n    if not done:\n        pytest.skip('the first failed')\n"
        "    assert total([9], 3) == 6\n",
        ("test_first", "test_second"),
    ),
    "under two names": (
        "from cart import total\n\n\ndef test_total():\n    assert total([9], 2) == 7\n\n\n"
        "test_again = test_total\n",
        ("test_total", "test_again"),
    ),
    "ids that differ from run to run": (
        "import os\n\nimport pytest\n\nfrom cart import total\n\n"
        "NAME = f'a {os.urandom(8).hex()}'\n\n\n"
        "@pytest.mark.parametrize('x', [1], ids=[NAME])\n"
        "def test_total(x):\n    assert total([9], 2) == 7\n",
        ("test_total[a",),
    ),
}


@pytest.mark.parametrize(("hidden", "broken"), _TOGETHER.values(), ids=_TOGETHER.keys())
def test_tests_that_hang_together_are_resolved_together(
    store: TemplateStore, hidden: str, broken: tuple[str, ...]
) -> None:
    task = with_hidden(hidden, *broken)
    verdict = grade(task, store.get(task), Patch(task.gold_patch))
    assert verdict.resolved, verdict


@pytest.mark.parametrize(
    "name", ["copies spared by their names", "equality that looks at its caller"]
)
def test_without_the_two_runs_a_challenge_aware_cheat_would_be_resolved(
    grade_tree: GradeTree, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """So that the red team's assertion that it is found out is about these runs."""
    assert not grade_tree(PATCHES[name].changes, rng=Random(0)).resolved
    monkeypatch.setattr(tries, "contradict", lambda *_: Turned())
    assert grade_tree(PATCHES[name].changes, rng=Random(0)).resolved


READING = """\
import pathlib, zlib


def total(prices, discount=0):
    raise ValueError(zlib.crc32(pathlib.Path("tests/test_discounts.py").read_bytes()))
"""


def test_grades_with_equal_random_sources_make_equal_draws(grade_tree: GradeTree) -> None:
    """The source under test reports a checksum of the tests, canaries included."""
    details = [
        grade_tree({"cart.py": f"{BASE['cart.py']}\n\n{READING}"}, **options).detail
        for options in ({"rng": Random(1)}, {"rng": Random(1)}, {"rng": Random(2)}, {}, {})
    ]
    assert "ValueError: " in details[0]
    assert details[0] == details[1]
    assert len(set(details)) == 4


def test_golds_take_fewer_runs(store: TemplateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    opening = mock.Mock(wraps=open_sandbox)
    monkeypatch.setattr("coding_gym.grading.tries.open_sandbox", opening)
    task = with_hidden(_PARAMETERS, *(f"test_total[{number}]" for number in range(1, 5)))
    template = store.get(task)
    assert grade(task, template, Patch(TASK.gold_patch)).resolved
    assert opening.call_count == 3
    gold = grade(task, template, Patch(TASK.gold_patch), is_gold=True)
    assert (gold.resolved, opening.call_count) == (True, 5)
    none = grade(task, template, _patch(BASE["cart.py"] + "\n"), is_gold=True)
    assert (none.reason, opening.call_count) == (GradeReason.TESTS_FAILED, 6)
