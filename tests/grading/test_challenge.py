"""The challenge: calibration, draws, bits, and the grades of honest and forged patches."""

from dataclasses import replace
from hashlib import sha256
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pytest
from grading_fixtures import (
    BASE,
    FIXED,
    HIDDEN,
    TASK,
    graded_gold,
    made_task,
    patch_of,
    with_hidden,
)

from coding_gym.errors import GradingError
from coding_gym.grade import GradeReason, Level, TestStatus
from coding_gym.grading import NO_REPAIR, grade, grader, new_plan
from coding_gym.grading.calibration import calibrate
from coding_gym.grading.challenge import Challenge, Unit
from coding_gym.grading.plan import plan_key
from coding_gym.grading.report import CheckReport, TestRun
from coding_gym.grading.selection import Selection
from coding_gym.patch import Patch
from coding_gym.rewards import fraction_passed
from coding_gym.sandbox import open_sandbox
from coding_gym.source_text import Edit
from coding_gym.task import FilesTree
from coding_gym.workspace import Template, TemplateStore

pytestmark = pytest.mark.slow

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
def test_repair_of_some_parameters_is_not_tampering(store: TemplateStore, draw: int) -> None:
    """If a check fails for some parameters, its negated version passes for these parameters."""
    task = with_hidden(_PARAMETERS, *(f"test_total[{number}]" for number in range(1, 5)))
    partial = FIXED.replace("- discount", "- min(discount, 2)")
    verdict = grade(task, store.get(task), _patch(partial), rng=Random(draw))
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert fraction_passed(verdict) == 0.5


# Checks that a program passes in both versions if all its functions return None.
_PASSED_BY_NONE = {
    "two calls": "assert total([9], 1) == total([8], 0)",
    "a helper that accepts None": "assert_total_equal(total([9], 1), 8)",
}


@pytest.mark.parametrize("check", _PASSED_BY_NONE.values(), ids=_PASSED_BY_NONE.keys())
def test_wrong_program_that_passes_both_versions_is_not_tampering(
    store: TemplateStore, check: str
) -> None:
    helper = "def assert_total_equal(value, wanted):\n    assert value in (None, wanted)\n\n\n"
    task = with_hidden(
        f"from cart import total\n\n\n{helper}def test_total():\n"
        f"    {check}\n    assert total([9], 2) == 7\n",
        "test_total",
    )
    assert graded_gold(task, store).resolved
    wrong = "def total(prices, discount):\n    pass\n\n\ndef count(prices):\n    pass\n"
    for draw in range(6):
        verdict = grade(task, store.get(task), _patch(wrong), rng=Random(draw))
        assert verdict.reason is GradeReason.TESTS_FAILED, verdict


def test_task_whose_gold_patch_changes_a_test_file_is_refused(store: TemplateStore) -> None:
    tests = "\n\ndef test_total():\n    assert total([10, 5], 3) == 12\n"
    base = BASE | {"cart.py": BASE["cart.py"] + tests}
    gold = Patch.between({"cart.py": base["cart.py"]}, {"cart.py": FIXED + tests})
    task = replace(
        TASK,
        tree=FilesTree(base),
        test_patch="",
        gold_patch=gold.text,
        fail_to_pass=("cart.py::test_total",),
        pass_to_pass=(),
    )
    with pytest.raises(GradingError, match=r"change of cart\.py.*remedy: move"):
        grade(task, store.get(task), Patch.between(base, {"cart.py": tests}))
    with pytest.raises(GradingError, match="remedy"):
        new_plan(task, store.get(task))
    assert grade(task, store.get(task), gold, challenge="none").resolved  # nothing is negated


def test_gold_patch_may_also_change_a_visible_test_file(store: TemplateStore) -> None:
    path = "tests/test_shown.py"
    tests = "from cart import total\n\n\ndef test_total():\n    assert total([10, 5], 3) == 12\n"
    base = BASE | {path: tests}
    repaired = base | {"cart.py": FIXED, path: f"{tests}\n\n# Two prices.\n"}
    task = replace(
        TASK,
        tree=FilesTree(base),
        gold_patch=Patch.between(base, repaired).text,
        test_patch="",
        fail_to_pass=(f"{path}::test_total",),
        pass_to_pass=(),
    )
    template = store.get(task)
    verdict = grade(task, template, Patch.between(base, base | {"cart.py": FIXED}))
    assert (verdict.resolved, verdict.levels) == (True, {"value": 1})
    emptied = Patch.between(base, base | {path: "def test_total():\n    pass\n", "cart.py": "\n"})
    verdict = grade(task, template, emptied)
    assert (verdict.resolved, verdict.dropped_paths) == (False, (path,))


_B, _C, _FLAKY = (f"test_x.py::test_{name}" for name in ("b", "c", "flaky"))
_FLAKY_FILE = (
    "def test_b():\n    assert f(3)\n\n\ndef test_c():\n    assert g(3)\n\n\n"
    "def test_flaky():\n    assert h(3)\n"
)


def _flaky_tree(functions: dict[str, tuple[str, ...]]) -> Any:
    """Returns a fake tree of three tests; the last test fails in every second run."""
    runs, files = count(), {"test_x.py": _FLAKY_FILE.encode()}

    def run(_: Patch, rewrite: Any = None, **__: object) -> TestRun:
        text = (files | (rewrite(files) if rewrite else {}))["test_x.py"].decode()
        passes = {
            _B: "assert f(3)\n" in text,
            _C: "assert g(3)\n" in text,
            _FLAKY: next(runs) % 2 == 0,
        }
        statuses = {
            test: TestStatus.PASSED if has_passed else TestStatus.FAILED
            for test, has_passed in passes.items()
        }
        return TestRun(ended=True, files=files, statuses=statuses)

    ids = {test: (test,) for test in (_B, _C, _FLAKY)} | functions
    runner = mock.Mock(records=False, function_ids=lambda *_: ids)
    return mock.Mock(run=run, runner=runner, paths=())


@pytest.mark.parametrize(
    ("fail_to_pass", "pass_to_pass", "functions"),
    [
        ((_B, _C), (_FLAKY,), {}),
        ((_B, _FLAKY), (), {}),
        ((_B,), (_FLAKY,), {_FLAKY: (_B,)}),  # a row of the same test
    ],
    ids=["pass-to-pass", "fail-to-pass", "a row"],
)
def test_only_stable_fail_to_pass_tests_have_units(
    fail_to_pass: tuple[str, ...],
    pass_to_pass: tuple[str, ...],
    functions: dict[str, tuple[str, ...]],
) -> None:
    task = replace(TASK, fail_to_pass=fail_to_pass, pass_to_pass=pass_to_pass)
    plan = calibrate(task, _flaky_tree(functions), Selection(NO_REPAIR), Random(1))
    assert plan.unstable == (_FLAKY,)
    stable = [(test,) for test in fail_to_pass if test != _FLAKY]
    assert sorted(unit.tests for unit in plan.challenge.units) == stable


def test_files_with_other_content_are_not_rewritten() -> None:
    data = b"def test_a():\n    assert f() == 1\n"
    challenge = Challenge(
        edits=(Edit("t.py", 0, 0, "# "),), digests={"t.py": sha256(data).hexdigest()}
    )
    assert challenge.rewritten({"t.py": data}, ()) == {"t.py": b"# " + data}
    assert challenge.rewritten({"t.py": b"import f\n"}, ()) == {}


def test_xfail_passes_only_if_it_xfails_with_the_gold_patch(store: TemplateStore) -> None:
    hidden = (
        f"import pytest\n\n{ONE}\n\n@pytest.mark.xfail\ndef test_known():\n"
        "    assert total([1], 0) == 2\n"
    )
    task = with_hidden(hidden, "test_total")
    task = replace(task, pass_to_pass=("tests/test_hidden.py::test_known",))
    assert graded_gold(task, store).resolved
    unrepaired = grade(task, store.get(task), _patch(BASE["cart.py"] + "\n"), challenge="none")
    assert unrepaired.pass_to_pass == {"tests/test_hidden.py::test_known": TestStatus.XFAILED}
    skipping = FIXED.replace("return sum", "import pytest\n    pytest.xfail()\n    return sum")
    assert not grade(task, store.get(task), _patch(skipping)).resolved


_MIXED = """\
import pytest

from cart import count, total


@pytest.mark.parametrize("discount", [1, 2, 3, 4])
def test_total(discount):
    assert total([9], discount) == 9 - discount


def test_one():
    assert total([7], 2) == 5
    assert count([1]) == 1
"""


def test_grade_after_one_version_does_not_depend_on_the_draw(store: TemplateStore) -> None:
    task = with_hidden(_MIXED, *(f"test_total[{n}]" for n in range(1, 5)), "test_one")
    partial = _patch(FIXED.replace("- discount", "- min(discount, 3)"))
    verdicts = [
        grade(task, store.get(task), partial, challenge="resolved", rng=Random(draw))
        for draw in range(6)
    ]
    assert {verdict.reason for verdict in verdicts} == {GradeReason.TESTS_FAILED}
    first, *others = (replace(verdict, duration_s=0) for verdict in verdicts)
    assert all(verdict == first for verdict in others)
    assert set(verdicts[0].fail_to_pass.values()) == {TestStatus.UNDECIDED}


_SHARED = """\
import pytest

from cart import count, total


def test_bug():
    assert total([9], 2) == 7


@pytest.mark.parametrize("number", range(40))
def test_kept(number):
    assert count([1] * number) == number
"""


@pytest.mark.parametrize("challenge", ["resolved", "passed"])
def test_broken_test_that_shares_a_check_with_the_sample_fails(
    store: TemplateStore, challenge: str
) -> None:
    task = with_hidden(_SHARED, "test_bug")
    pass_to_pass = tuple(f"tests/test_hidden.py::test_kept[{number}]" for number in range(40))
    task = replace(task, pass_to_pass=pass_to_pass)
    broken = FIXED.replace("return len(prices)", "return len(prices) % 39")
    for draw in range(5):
        rng = Random(draw)
        verdict = grade(task, store.get(task), _patch(broken), challenge=challenge, rng=rng)
        assert verdict.reason is GradeReason.TESTS_FAILED, draw
        assert verdict.pass_to_pass[pass_to_pass[39]] is TestStatus.FAILED


_WRITING = """\
import pathlib

from cart import total


def note(word):
    if word == "as it is":
        return 2
    file = pathlib.Path(__file__)
    file.write_text(file.read_text() + "# another word\\n")
    return 3


def check(value, rest):
    assert value == 9 - rest


def test_total():
    check(total([9], 2), note("as it is"))
"""
_UNUSUAL_TABLES = """\
from datetime import date

import pytest

from cart import total

REBATE = int("2")


def named(number, name):
    return number


@pytest.mark.parametrize("day, expected", [(date(2024, 5, 30), 28), (date(2024, 5, 27), 25)])
def test_total(expected, day):
    assert total([day.day], REBATE) == expected


@pytest.mark.parametrize("price, expected", [(9, named(7, "a")), (10, named(8, "b"))])
def test_more(price, expected):
    assert total([price], REBATE) == expected


@pytest.mark.parametrize("expected, day", [(28, date(2024, 5, 30)), (27, date(2024, 5, 29))])
def test_most(expected, day):
    assert total([day.day], REBATE) == expected
"""
_UNUSUAL = {
    "inherited": (
        "from cart import total\n\n\nclass TestBase:\n    price = 9\n\n"
        "    def test_total(self):\n        assert total([self.price], 2) == self.price - 2\n\n\n"
        "class TestOther(TestBase):\n    price = 5\n",
        ("TestBase::test_total", "TestOther::test_total"),
    ),
    "parameters that are expected to fail": (
        _PARAMETERS.replace("4]", "-4]").replace("9 - discount", "9 - abs(discount)"),
        ("test_total[1]", "test_total[2]", "test_total[3]"),
    ),
    "a test that cannot run twice": (
        "import pytest\n\nfrom cart import total\n\nUSES = []\n\n\n"
        "@pytest.fixture\ndef once():\n    assert not USES\n    USES.append(1)\n\n\n"
        "def test_once(once):\n    assert total([1], 1) == 0\n\n\n"
        "def test_often():\n    assert total([2], 1) == 1\n",
        ("test_once", "test_often"),
    ),
    "a negation that writes into its file": (_WRITING, ("test_total",)),
    "a negation that breaks the import": (
        _UNUSUAL_TABLES,
        (
            *("test_total[day0-28]", "test_total[day1-25]", "test_more[9-7]", "test_more[10-8]"),
            *("test_most[28-day0]", "test_most[27-day1]"),
        ),
    ),
}


@pytest.mark.parametrize(("hidden", "names"), _UNUSUAL.values(), ids=_UNUSUAL.keys())
def test_repair_resolves_a_task_with_unusual_tests(
    store: TemplateStore, hidden: str, names: tuple[str, ...]
) -> None:
    task = with_hidden(hidden, *names)
    for draw in range(3):
        verdict = grade(task, store.get(task), Patch(task.gold_patch), rng=Random(draw))
        assert verdict.resolved, verdict


PARTIAL = FIXED.replace("- discount", "- min(discount, 3)")
NOT_RUN = "import _pytest.python\n\n_pytest.python.Function.runtest = lambda self: None\n"
CHEAT = patch_of({"cart.py": f"{BASE['cart.py']}\n\n{NOT_RUN}"})
ONE = "from cart import total\n\n\ndef test_total():\n    assert total([9], 2) == 7\n"
TEN = "from cart import total\n\n\n" + "\n\n".join(
    f"def test_{number}():\n    assert total([{number}], 1) == {number - 1}\n"
    for number in range(10)
)
NAMES = tuple(f"test_{number}" for number in range(10))
# Arguments of `grade`, and the number of test runs.
RUNS = {
    "a repair": (TASK, FIXED, "passed", 2),
    "a repair, challenge resolved": (TASK, FIXED, "resolved", 2),
    "a repair, no pass-to-pass tests": (with_hidden(TEN, *NAMES), FIXED, "passed", 2),
    "no repair": (TASK, BASE["cart.py"] + "\n", "passed", 2),
    "no repair, challenge resolved": (TASK, BASE["cart.py"] + "\n", "resolved", 1),
    "partial repair": (TASK, PARTIAL, "passed", 3),
}


@pytest.mark.parametrize("name", RUNS)
def test_number_of_runs_depends_on_result_and_challenge(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    task, source, challenge, num_runs = RUNS[name]
    grade(task, store.get(task), _patch(FIXED))  # makes the plan
    spy = mock.Mock(wraps=open_sandbox)
    monkeypatch.setattr("coding_gym.grading.tree.open_sandbox", spy)
    rng = Random(0)  # the first version has the only assertion that a partial repair fails
    verdict = grade(task, store.get(task), _patch(source), challenge=challenge, rng=rng)
    assert spy.call_count == 1 + num_runs  # the first sandbox normalises the patch
    assert verdict.resolved == name.startswith("a repair")
    assert verdict.is_verified is (verdict.resolved or challenge == "passed")


def test_task_without_gold_patch_is_not_challenged(store: TemplateStore) -> None:
    task = replace(TASK, gold_patch="", task_id="cart-without-gold")
    verdict = grade(task, store.get(task), _patch(FIXED))
    assert (verdict.resolved, verdict.is_verified, verdict.bits) == (True, False, 0)
    assert verdict.levels == {"structure": 4}


def test_uncalibrated_plan_is_made_once(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = with_hidden("def test_never():\n    assert False\n", "test_never")
    assert grade(task, store.get(task), _patch(FIXED)).plan == ""
    spy = mock.Mock(wraps=open_sandbox)
    monkeypatch.setattr("coding_gym.grading.tree.open_sandbox", spy)
    verdict = grade(task, store.get(task), _patch(FIXED))
    assert spy.call_count == 2  # the first normalises the patch, the second runs the tests
    assert verdict.levels == {"structure": 1}


def test_grades_are_equal_in_any_order(store: TemplateStore) -> None:
    sources = {"gold": FIXED, "partial": PARTIAL, "base": BASE["cart.py"] + "\n"}
    patches = {name: _patch(source) for name, source in sources.items()}
    patches |= {"cheat": CHEAT}
    verdicts = [
        {name: str(grade(TASK, store.get(TASK), patches[name]).reason) for name in order}
        for order in (list(patches), list(patches)[::-1])
    ]
    assert verdicts[0] == verdicts[1]


def test_test_that_reads_its_source_keeps_plain_assertions(
    store: TemplateStore,
) -> None:
    hidden = (
        "import inspect\n\nfrom cart import total\n\n\ndef test_a():\n"
        "    if '__' + 'checks__' in inspect.getsource(test_a):\n        raise OSError\n"
        f"    {_SECOND}\n\ndef test_b():\n    {_SECOND}"
    )
    task = with_hidden(hidden, "test_a", "test_b")
    plan = new_plan(task, store.get(task))
    assert (plan.is_plain, [len(unit.tests) for unit in plan.challenge.units]) == (True, [1])
    assert graded_gold(task, store).resolved


def test_every_unit_is_negated_in_exactly_one_version(store: TemplateStore) -> None:
    challenge = new_plan(TASK, store.get(TASK)).challenge
    draws = {challenge.draw(TASK.fail_to_pass, Random(seed)) for seed in range(60)}
    assert len(draws) == 8  # three functions; one of them has two tests
    assert all(a | b == {0, 1, 2} and not a & b for a, b in draws)
    files = {path: text.encode() for path, text in (BASE | HIDDEN).items() if path.endswith(".py")}
    first, second = (challenge.rewritten(files, negated) for negated in next(iter(draws)))
    originals = challenge.rewritten(files, ())
    path = "tests/test_discounts.py"
    lines = zip(*(text[path].splitlines() for text in (originals, first, second)), strict=True)
    differences = [(original in pair, len({*pair})) for original, *pair in lines]
    # A line that differs between the versions is the original in one of them.
    assert [pair for pair in differences if pair[1] > 1] == [(True, 2)] * 3


def test_assertions_that_pass_at_base_are_no_bits(store: TemplateStore) -> None:
    hidden = (
        "import pytest\n\nfrom cart import total\n\n\n"
        "def test_two():\n    assert total([3000, 7], 2) == 3005\n"
        "    assert total([3137, 7], 2) == 3142\n\n\n"
        "def test_shown():\n    for rebate in [0, 2]:\n"
        "        assert total([19 + rebate], rebate) == 19\n\n\n"
        '@pytest.mark.parametrize("price, rebate, left",\n'
        "    [(5000, 0, 5007), (5100, 2, 5105), (5237, 2, 5242)])\n"
        "def test_rows(price, rebate, left):\n    assert total([price, 7], rebate) == left\n"
    )
    rows = "test_rows[5100-2-5105]", "test_rows[5237-2-5242]"
    task = with_hidden(hidden, "test_two", "test_shown", *rows)
    plan = new_plan(task, store.get(task))
    units = {test.partition("::")[2]: plan.challenge.units_of([test]) for test in task.fail_to_pass}
    bits = {test: sum(unit.is_bit for unit in units[test]) for test in units}
    assert bits.pop("test_shown") == 0
    assert sum(bits.values()) > 0  # a random choice of numbers decides which of the others are bits
    verdict = graded_gold(task, store)
    assert (verdict.resolved, verdict.weakest_bits) == (True, 0)
    assert verdict.bits == plan.challenge.num_bits(task.fail_to_pass) <= 4


def test_mirrored_units_are_one_bit_together() -> None:
    """A guess of the direction in which the base errs may decide all mirrored units."""
    units = [
        Unit(edits=(), level=Level.VALUE, tests=("t.py::t",), is_bit=True, is_mirrored=is_mirrored)
        for is_mirrored in (True, True, True, False, False)
    ]
    assert Challenge(units=tuple(units)).num_bits(["t.py::t"]) == 3


def test_each_execution_of_a_negated_check_must_fail() -> None:
    unit = Unit(edits=(), checks=(0,), tests=("t",), level=Level.KNOWN)
    challenge = Challenge(units=(unit,), reached={"t": (0,)}, num_checks=1)
    statuses = []
    for report in (CheckReport(num_failed=2), CheckReport(num_passed=1, num_failed=1)):
        run = TestRun(statuses={"t": TestStatus.PASSED}, recorded={"t": {0: report}})
        statuses.append(challenge.outcome("t", run, negated=[0]).status)
    assert statuses == [TestStatus.PASSED, TestStatus.FAILED]


def test_plan_of_a_task_with_another_environment_or_log_format_has_another_key() -> None:
    template = cast("Template", SimpleNamespace(base_commit="abc"))
    built = replace(TASK, install_commands=("pip install x",))
    logged = replace(TASK, runner="swebench", repo="django/django")
    tasks = [TASK, replace(TASK, image="x"), replace(TASK, image="x", image_path="/a")]
    tasks += [built, replace(built, environment_setup_commit="f"), replace(built, version="f")]
    tasks += [logged, replace(logged, repo="sympy/sympy")]
    assert len({plan_key(task, template) for task in tasks}) == len(tasks)


def test_numbers_that_several_assertions_expect_are_no_bits(store: TemplateStore) -> None:
    hidden = "from app import status\n" + "".join(
        f"\n\ndef test_{n}():\n    assert status({100 + 37 * n}) == 9\n" for n in range(14)
    )
    task = made_task(
        "statuses",
        {"app.py": "def status(page):\n    return None\n"},
        {"app.py": "def status(page):\n    return 9\n"},
        {"tests/test_app.py": hidden},
        fail_to_pass=tuple(f"tests/test_app.py::test_{n}" for n in range(14)),
    )
    # The most frequent number in the two versions is the right number of all tests.
    plan = new_plan(task, store.get(task))
    assert (
        plan.challenge.num_bits(task.fail_to_pass),
        plan.counts(task.fail_to_pass)["value"],
    ) == (0, 14)


@pytest.mark.parametrize(
    "absent", ["self.assertNotIn(3, box)", "assert 3 not in box", "assert 3 not in box, box"]
)
def test_failed_assertions_do_not_change_the_program(store: TemplateStore, absent: str) -> None:
    code = (
        "class Box:\n    old = [3]\n\n    def __contains__(self, item):\n"
        "        return False\n\n    def __repr__(self):\n        self.old.clear()\n"
        "        return 'a box'\n\n    def remove(self):\n"
        "        if not self.old:\n            raise KeyError(3)\n"
    )
    hidden = (
        "import unittest\n\nfrom box import Box\n\n\nclass TestBox(unittest.TestCase):\n"
        f"    def test_remove(self):\n        box = Box()\n        Box.old[:] = [3]\n"
        f"        {absent}\n        {absent}\n        with self.assertRaises(KeyError):\n"
        "            box.remove()\n"
    )
    task = made_task(
        "box",
        {"box.py": code},
        {"box.py": code.replace("        if not self.old:\n            ", "        ")},
        {"tests/test_box.py": hidden},
        fail_to_pass=("tests/test_box.py::TestBox::test_remove",),
    )
    assert graded_gold(task, store).resolved
    for seed in range(4):
        patch = Patch.between({"box.py": code}, {"box.py": code + "\n"})
        assert not grade(task, store.get(task), patch, rng=Random(seed)).resolved


def test_tests_that_need_earlier_tests_run_with_them(store: TemplateStore) -> None:
    hidden = (
        "from cart import count, total\n\ndone = []\n\n\n"
        "def test_first():\n    assert total([9], 2) == 7\n    done.append(1)\n\n\n"
        "def test_second():\n    assert done\n    assert count([9]) == 1\n"
    )
    task = with_hidden(hidden, "test_first")
    task = replace(task, pass_to_pass=("tests/test_hidden.py::test_second",))
    plan = new_plan(task, store.get(task))
    assert (plan.is_calibrated, plan.is_alone) == (True, False)
    assert graded_gold(task, store).resolved
    assert not grade(task, store.get(task), _patch(BASE["cart.py"] + "\n")).resolved


_PATH, _OTHER = "tests/test_hidden.py", "tests/test_shown.py"
_IMPORT = "from cart import total\n"
_OLD, _SAME, _NEW = (
    f"\n\ndef test_{name}():\n    assert total([3000, {number}], 2) == {2998 + number}\n"
    for name, number in (("old", 7), ("same", 7), ("new", 8))
)
# Other files of the tree, the hidden tests, the issue, and the bits of each test.
_SHOWN: dict[str, tuple[dict[str, str], str, str, dict[str, int]]] = {
    "nowhere": ({}, _NEW, "", {f"{_PATH}::test_new": 1}),
    "in the issue": ({}, _NEW, f">>>{_NEW.rpartition(':')[2]}", {f"{_PATH}::test_new": 0}),
    "in another file": (
        {_OTHER: _IMPORT + _OLD},
        _NEW,
        "",
        {f"{_PATH}::test_new": 1, f"{_OTHER}::test_old": 0},
    ),
    "in the same file": (
        {_PATH: _IMPORT + _OLD},
        _OLD + _SAME + _NEW,
        "",
        {f"{_PATH}::test_old": 0, f"{_PATH}::test_same": 0, f"{_PATH}::test_new": 1},
    ),
}


@pytest.mark.parametrize(("tree", "hidden", "issue", "bits"), _SHOWN.values(), ids=_SHOWN.keys())
def test_lines_that_the_policy_can_see_are_no_bits(
    store: TemplateStore, tree: dict[str, str], hidden: str, issue: str, bits: dict[str, int]
) -> None:
    before = {path: text for path, text in tree.items() if path == _PATH}
    task = replace(
        TASK,
        tree=FilesTree(BASE | tree),
        test_patch=Patch.between(before, {_PATH: _IMPORT + hidden}).text,
        problem_statement=f"It fails.\n\n{issue}",
        fail_to_pass=tuple(bits),
        pass_to_pass=(),
    )
    challenge = new_plan(task, store.get(task)).challenge
    assert {test: challenge.num_bits([test]) for test in bits} == bits


_LUCKY = """\
import os

from cart import total


def test_total():
    assert total([9], 2) == 7


def test_lucky():
    assert total([9], 3) == 6
    assert os.urandom(1)[0] % 4
"""


def test_unstable_test_of_the_bug_is_repeated_and_other_tests_are_ignored(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = with_hidden(_LUCKY.replace("os.urandom(1)[0] % 4", "0"), "test_total", "test_lucky")
    task2 = replace(task, fail_to_pass=task.fail_to_pass[:1], pass_to_pass=task.fail_to_pass[1:])
    flaky = task.fail_to_pass[1:]
    original_plan = new_plan(task, store.get(task))
    plan = replace(original_plan, unstable=flaky)
    for graded_task in (task, task2):
        monkeypatch.setattr(grader, "stored_plan", lambda *_: plan)
        spy = mock.Mock(wraps=open_sandbox)
        monkeypatch.setattr("coding_gym.grading.tree.open_sandbox", spy)
        template = store.get(graded_task)
        verdict = grade(graded_task, template, _patch(FIXED), challenge="resolved")
        assert verdict.resolved is (graded_task is task2)
        assert spy.call_count == 1 + 2  # the first sandbox normalises the patch


def test_repair_can_resolve_a_task_of_unstable_tests(store: TemplateStore) -> None:
    """A test that passes three times in four runs twice in each version.

    A correct program still fails one time in four, if the random assertion is negated.
    """
    task = with_hidden(_LUCKY, "test_lucky")
    template = store.get(task)
    plan = replace(new_plan(task, template), is_calibrated=True, unstable=task.fail_to_pass)
    task = replace(task, grading_plan=plan.to_text(plan_key(task, template)))
    grades = [grade(task, template, Patch(task.gold_patch)) for _ in range(8)]
    assert any(verdict.resolved for verdict in grades)


def test_gold_patch_resolves_though_a_negated_check_breaks_another(store: TemplateStore) -> None:
    """A plan tries each two units in different versions, whatever its draws."""
    lines = ("assert total([9], 1) == 8; price = 9", "assert total([price], 2) == 7")
    hidden = "from cart import total\n\n\ndef test_a():\n" + "".join(f"    {x}\n" for x in lines)
    task = with_hidden(hidden, "test_a")
    template = store.get(task)
    with mock.patch.object(Challenge, "draw", lambda self, *_: (range(len(self.units)), ())):
        plan = new_plan(task, template)
    task = replace(task, grading_plan=plan.to_text(plan_key(task, template)))
    verdicts = [grade(task, template, Patch(task.gold_patch), rng=Random(n)) for n in range(8)]
    assert all(verdict.resolved for verdict in verdicts)


def test_task_with_assertions_only_on_branches_is_not_verified(store: TemplateStore) -> None:
    """A forger can claim that the program took another branch."""
    hidden = "from cart import total\n\n\ndef test_a():\n    if total([]) == 0:\n"
    hidden += "        assert total([9], 2) == 7\n"
    for text, bits, level in (
        (hidden, 0, "structure"),
        (f"{hidden}    print()\n", 0, "structure"),
        (f"{hidden}    {_SECOND}", 1, "value"),
    ):
        task = with_hidden(text, "test_a")
        verdict = graded_gold(task, store)
        assert (verdict.resolved, verdict.bits, verdict.levels) == (True, bits, {level: 1})
        assert verdict.is_verified is bool(bits)
        assert verdict.unnegated == (() if bits else task.fail_to_pass)


_SECOND = "assert total([3000, 8], 2) == 3006\n"


_OPEN = """\
import unittest

import pytest

from cart import total


class TestIt(unittest.TestCase):
    def test_bug(self):
        self.assertGreater(total([9], -2), 8)
        self.assertIn(total([9], -2), [10, 11, 12])


def test_error():
    with pytest.raises(Exception):
        total(None)


@pytest.mark.xfail
@pytest.mark.parametrize("price, want", [(9, 100), (8, 200)])
def test_rows(price, want):
    assert total([price]) == want
"""


def test_repair_that_differs_within_the_assertions_resolves(store: TemplateStore) -> None:
    task = with_hidden(_OPEN, "TestIt::test_bug")
    names = ("test_error", "test_rows[9-100]", "test_rows[8-200]")
    task = replace(task, pass_to_pass=tuple(f"tests/test_hidden.py::{name}" for name in names))
    template = store.get(task)
    other = FIXED.replace(
        "    return sum", "    if not prices:\n        raise OSError\n    return sum"
    )
    other = other.replace("- discount", "- discount + (discount < 0)")
    for patch in (Patch(task.gold_patch), *[_patch(other)] * 4):
        verdict = grade(task, template, patch)
        assert verdict.resolved, verdict.detail


def test_repair_resolves_if_pass_to_pass_tests_need_each_other(
    store: TemplateStore,
) -> None:
    hidden = "from cart import total\n\n\ndef test_bug():\n    assert total([9], 2) == 7\n"
    source = "SEEN = []\n\n\ndef test_a():\n    SEEN.append(7)\n    assert SEEN == [7]\n"
    source += "\n\ndef test_b():\n    assert SEEN == [7]\n"
    source += "".join(f"\n\ndef test_{n}():\n    assert {n} == 0 + {n}\n" for n in range(20))
    names = ["a", "b", *map(str, range(20))]
    task = with_hidden(hidden, "test_bug")
    task = replace(
        task,
        tree=FilesTree(BASE | {"tests/test_kept.py": source}),
        pass_to_pass=tuple(f"tests/test_kept.py::test_{name}" for name in names),
    )
    template = store.get(task)
    assert new_plan(task, template).is_alone
    grades = [grade(task, template, Patch(task.gold_patch), rng=Random(n)) for n in range(6)]
    assert [verdict.resolved for verdict in grades] == [True] * 6


# Tables whose rows cannot have other ids, with the ids of their tests.
_FIXED_IDS = {
    "a fixture with a parameter": (
        """
@pytest.fixture(params=["one"])
def shop(request):
    return request.param


@pytest.mark.parametrize("price, expected", [pytest.param(9, 7, id="more"), (8, 6)])
def test_total(shop, price, expected):
    assert total([price], 2) == expected
""",
        ["test_total[one-more]", "test_total[one-8-6]"],
    ),
    "ids that SWE-bench cuts": (
        """
@pytest.mark.parametrize("word, expected", [("a b", 1), ("a cc", 2), ("xyz", 1)])
def test_total(word, expected):
    assert total([len(word)], 2) == expected
""",
        ["test_total[a", "test_total[xyz-1]"],
    ),
    "a test that reads its id": (
        """
@pytest.mark.parametrize("price, expected", [(9, 7), (8, 6)])
def test_total(request, price, expected):
    if request.node.name not in ("test_total[9-7]", "test_total[8-6]"):
        raise KeyError(request.node.name)
    assert total([price], 2) == expected
""",
        ["test_total[9-7]", "test_total[8-6]"],
    ),
}


@pytest.mark.parametrize("is_pass_to_pass", [False, True])
@pytest.mark.parametrize(("hidden", "names"), _FIXED_IDS.values(), ids=_FIXED_IDS.keys())
def test_tests_that_instrumentation_breaks_are_graded_as_written(
    store: TemplateStore, hidden: str, names: list[str], is_pass_to_pass: bool
) -> None:
    plain = "def test_bug():\n    assert total([7], 2) == 5\n"
    text = f"import pytest\n\nfrom cart import total\n\n\n{plain}\n{hidden}"
    task = with_hidden(text, "test_bug", *names)
    if is_pass_to_pass:
        bug, *rest = task.fail_to_pass
        task = replace(task, fail_to_pass=(bug,), pass_to_pass=tuple(rest))
    template = store.get(task)
    plan = new_plan(task, template)
    assert plan.unstable == ()
    task = replace(task, grading_plan=plan.to_text(plan_key(task, template)))
    assert grade(task, template, Patch(task.gold_patch)).resolved
    broken = FIXED.replace("- discount", "- discount + (prices != [7])")
    verdict = grade(task, template, _patch(broken), challenge="passed")
    assert not verdict.resolved
