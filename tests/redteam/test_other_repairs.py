"""Correct repairs that differ from the gold patch resolve tasks, in all styles of assertions."""

from random import Random
from typing import NamedTuple

import pytest
from grading_fixtures import made_task

from coding_gym.grade import GradeReason, TestStatus
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow


class Style(NamedTuple):
    """The body of a hidden test, and bodies of the function ``f`` that the test calls."""

    test: str
    base: str
    gold: str
    other: str


_RAISES_ABOVE = "if x > {}:\n        raise ValueError(x)"
_POLLED = "polls = iter({})\n    return lambda: next(polls)"
STYLES = {
    "imported_inequality": Style("assert_less(f(), 7)", "return 9", "return 6", "return 1"),
    "imported_tolerance": Style(
        "assert_within(f(), 3.0, 0.5)", "return 9.0", "return 3.45", "return 3.0"
    ),
    "imported_search": Style(
        "assert_contains(f(), '12')", "return 'x'", "return 'no 12'", "return '11 12 13 14 15 16'"
    ),
    "imported_limit": Style(
        "check_limit(len(f()), 5)", "return '123456'", "return '12345'", "return ''"
    ),
    "local_inequality": Style("check_at_least(f(), 5)", "return 1", "return 5", "return 88"),
    "local_equality": Style("check_same(f(), 7)", "return 8", "return 7", "return 3 + 4"),
    "any_call": Style(
        "log = Mock()\n    f(log)\n    log.assert_any_call(3)",
        "x(9)",
        "x(3)",
        "for number in range(9):\n        x(number)",
    ),
    "has_calls": Style(
        "log = Mock()\n    f(log)\n    log.assert_has_calls([call(1), call(2)])",
        "x(1)",
        "x(1)\n    x(2)",
        "for number in range(9):\n        x(number)",
    ),
    "called_with": Style(
        "log = Mock()\n    f(log)\n    log.assert_called_with(3)", "x(1)", "x(3)", "x(2)\n    x(3)"
    ),
    "approx": Style("assert f() == approx(3.0, abs=0.5)", "return 9", "return 3.4", "return 2.7"),
    "delta": Style(
        "TestCase().assertAlmostEqual(f(), 3.0, delta=0.5)", "return 9", "return 3.4", "return 2.7"
    ),
    "rtol": Style("assert_allclose(f(), 3.0, rtol=0.2)", "return 9", "return 3.4", "return 2.7"),
    "isclose": Style(
        "assert isclose(f(), 3.0, abs_tol=0.5)", "return 9", "return 3.4", "return 2.7"
    ),
    "raises": Style(
        "assert_raises(ValueError, f, 70)",
        "pass",
        _RAISES_ABOVE.format(69),
        _RAISES_ABOVE.format(9),
    ),
    "polling": Style(
        "end = time() + 60\n    is_done = f()\n    while not is_done():\n"
        "        assert time() < end\n    assert is_done()",
        _POLLED.format("[True, False]"),
        _POLLED.format("[False, False, True, True]"),
        _POLLED.format("[True, True]"),
    ),
    "order": Style("assert sorted(f()) == [1, 2]", "return [1]", "return [1, 2]", "return [2, 1]"),
    "same_items": Style(
        "TestCase().assertCountEqual(f(), [1, 2])", "return [1]", "return [1, 2]", "return [2, 1]"
    ),
    "regex": Style(
        "TestCase().assertRegex(f(), '[0-9]+ items')",
        "return 'items'",
        "return '3 items'",
        "return '12 items'",
    ),
    "one_of": Style("assert f() in (1, 2)", "return 3", "return 1", "return 2"),
    "unequal": Style("assert f() != 4", "return 4", "return 5", "return 'four'"),
    "kind": Style("assert isinstance(f(), int)", "return '1'", "return 1", "return 73"),
    "greater": Style("assert f() > 5", "return 5", "return 6", "return 6_000"),
    "loop": Style(
        "assert f()\n    for number in f():\n        assert number > 0",
        "return [0]",
        "return [1, 2]",
        "return [5]",
    ),
    "sometimes_reached": Style(
        "assert f(1) == 2\n    for number in range(SystemRandom().randrange(4) // 3):\n"
        "        assert f(number) == number + 1",
        "return x",
        "return x + 1",
        "return 1 + x",
    ),
}
_HELPERS = """\
def assert_less(left, right):
    assert left < right


def assert_within(left, right, tolerance):
    assert abs(left - right) <= tolerance


def assert_contains(text, part):
    assert part in text


def check_limit(number, limit):
    assert number <= limit


def assert_allclose(left, right, rtol):
    assert abs(left - right) <= rtol * abs(right)


def assert_raises(error, function, *args):
    try:
        function(*args)
    except error:
        return
    raise AssertionError(function)
"""
_HEAD = """\
from math import isclose
from random import SystemRandom
from time import time
from unittest import TestCase
from unittest.mock import Mock, call

from pytest import approx, mark

import source
from helpers import *


def check_at_least(number, limit):
    assert number >= limit


def check_same(value, wanted):
    assert value == wanted
"""


def _program(part: str) -> str:
    bodies = {name: getattr(style, part) for name, style in STYLES.items()}
    return "\n\n".join(f"def {name}(x=0):\n    {body}\n" for name, body in bodies.items())


@pytest.fixture(scope="module")
def styles_task() -> Task:
    tests = [
        f"def test_{name}():\n    f = source.{name}\n    {style.test}\n"
        for name, style in STYLES.items()
    ]
    return made_task(
        "other-repairs",
        {"source.py": _program("base")},
        {"source.py": _program("gold")},
        {"helpers.py": _HELPERS, "test_source.py": "\n\n".join([_HEAD, *tests])},
        fail_to_pass=tuple(f"test_source.py::test_{name}" for name in STYLES),
    )


@pytest.mark.parametrize("part", ["gold", "other"])
def test_correct_repairs_resolve_in_every_draw(
    store: TemplateStore, styles_task: Task, part: str
) -> None:
    template = store.get(styles_task)
    patch = Patch.between({"source.py": _program("base")}, {"source.py": _program(part)})
    for draw in range(6):
        verdict = grade(styles_task, template, patch, challenge="passed", rng=Random(draw))
        failed = [t for t, status in verdict.fail_to_pass.items() if status != TestStatus.PASSED]
        assert not failed, verdict.detail
        assert verdict.resolved
    levels = dict(verdict.levels)
    assert levels.pop("structure", 0) == 0, verdict.unnegated
    assert levels["value"] >= 4


@pytest.mark.parametrize("call", ["assert_less(f(), 7)", "check_same(f(), 7)"])
def test_program_that_disables_an_imported_helper_is_refused(
    store: TemplateStore, call: str
) -> None:
    helpers = _HELPERS + "\n\ndef check_same(value, wanted):\n    assert value == wanted\n"
    tests = f"from source import f\n\nfrom helpers import *\n\n\ndef test_f():\n    {call}\n"
    base, gold = ({"source.py": f"def f():\n    return {n}\n"} for n in (9, 7 - ("less" in call)))
    hidden = {"helpers.py": helpers, "test_source.py": tests}
    task = made_task("disabled", base, gold, hidden, fail_to_pass=("test_source.py::test_f",))
    template = store.get(task)
    assert grade(task, template, Patch(task.gold_patch)).resolved
    cheat = base["source.py"] + "\n\nimport helpers\n\n"
    cheat += "helpers.assert_less = helpers.check_same = lambda *args: None\n"
    for draw in range(3):
        patch = Patch.between(base, {"source.py": cheat})
        assert not grade(task, template, patch, rng=Random(draw)).resolved


def test_assertion_that_only_a_wrong_repair_reaches_fails_it(store: TemplateStore) -> None:
    """With the gold patch the loop has no items for 0, so no run of calibration reaches it."""
    tests = (
        "from pytest import mark\n\nfrom source import f\n\n\n"
        '@mark.parametrize("number", [0, 2])\ndef test_items(number):\n'
        "    items = f(number)\n    assert len(items) < 3\n    for item in items:\n"
        "        assert item == 'good'\n"
    )
    base, gold, wrong = (
        {"source.py": f"def f(number):\n    return {value}\n"}
        for value in ("['bad'] * 4", "['good'] * number", "['good'] * number or ['bad']")
    )
    names = ("test_source.py::test_items[0]", "test_source.py::test_items[2]")
    task = made_task("loop", base, gold, {"test_source.py": tests}, fail_to_pass=names)
    template = store.get(task)
    for draw in range(6):
        verdict = grade(task, template, Patch.between(base, wrong), rng=Random(draw))
        assert verdict.reason is GradeReason.TESTS_FAILED, verdict
        assert grade(task, template, Patch(task.gold_patch), rng=Random(draw)).resolved
