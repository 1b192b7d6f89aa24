"""Correct repairs that differ from the gold patch resolve tasks, in all styles of assertions."""

from random import Random
from typing import NamedTuple

import pytest
from grading_fixtures import made_task

from coding_gym.grade import GradeReason, TestStatus
from coding_gym.grading import grade, new_plan
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
    "for_polling": Style(
        "is_done = f()\n    for _ in range(3):\n        if is_done():\n            break\n"
        "        assert time() > 0\n    else:\n        assert is_done()",
        _POLLED.format("[False] * 9"),
        _POLLED.format("[False, True]"),
        _POLLED.format("[True]"),
    ),
    "input_of_a_helper": Style(
        "check_round_trip(f, 5)", "return x + 1", "return int(str(x))", "return x"
    ),
    "function_with_the_name_of_a_helper": Style(
        "check_amount = f\n    check_amount(5)",
        "raise ValueError(x)",
        "if x < 0:\n        raise ValueError(x)",
        "if isinstance(x, int) and x < 0:\n        raise ValueError(x)",
    ),
    "member": Style(
        "assert 20_000 in f()", "return ()", "return range(30_000)", "return range(100_000)"
    ),
    "refused_input": Style(
        "check_refused(f, 'x7')",
        "pass",
        "if not x.isdigit():\n        raise ValueError(x)",
        "if not isinstance(x, str) or not x.isdigit():\n        raise ValueError(x)",
    ),
    "parsed_input": Style(
        "assert_parses(f, '1')",
        "raise ValueError(x)",
        "return x.upper()",
        "return str(x)",
    ),
    "local_tolerance": Style(
        "check_about_three(f(2))", "return 9.0", "return x + 1.0", "return 3.1"
    ),
    "keyword_tolerance": Style(
        "assert_values_equal(f(), 3.0, tol=0.5)", "return 9.0", "return 3.4", "return 2.7"
    ),
    "local_variable": Style(
        "value = f()\n    assert_less(value, 7)", "return 9", "return 6", "return 1"
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


def check_round_trip(function, value):
    assert function(value) == value


def check_refused(function, text):
    try:
        function(text)
    except ValueError:
        return
    raise AssertionError(text)


def assert_parses(function, text):
    function(text)


def assert_values_equal(left, right, tol):
    assert abs(left - right) <= tol


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


def check_about_three(value):
    assert value == approx(3.0, abs=0.5)
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
    assert verdict.unnegated == ("test_source.py::test_for_polling",)
    assert verdict.levels["value"] >= 4
    assert verdict.challenge.startswith("value ")


# Programs that pass, or disable, assertions of helpers; each equals or precedes every number.
_LENIENT = """\
class Any(int):
    def __eq__(self, other):
        return isinstance(other, int)

    __lt__ = __le__ = __eq__
    __hash__ = int.__hash__


def f():
    return Any(9)
"""
_DISABLING = """\
import helpers

helpers.assert_less = helpers.check_same = lambda *args: None


def f():
    return 9
"""


@pytest.mark.parametrize("cheat", [_LENIENT, _DISABLING])
@pytest.mark.parametrize(
    "body",
    [
        "assert_less(f(), 7)",
        "check_same(f(), 6)",
        "value = f()\n    assert_less(value, 7)",
        "log = Mock()\n    log(f())\n    log.assert_called_once_with(6)",
    ],
)
def test_program_that_passes_every_helper_is_refused(
    store: TemplateStore, body: str, cheat: str
) -> None:
    helpers = _HELPERS + "\n\ndef check_same(value, wanted):\n    assert value == wanted\n"
    tests = "from unittest.mock import Mock\n\nfrom source import f\n\nfrom helpers import *\n"
    tests += f"\n\ndef test_f():\n    {body}\n"
    base, gold = ({"source.py": f"def f():\n    return {number}\n"} for number in (9, 6))
    hidden = {"helpers.py": helpers, "test_source.py": tests}
    task = made_task("lenient", base, gold, hidden, fail_to_pass=("test_source.py::test_f",))
    template = store.get(task)
    assert grade(task, template, Patch(task.gold_patch)).resolved
    for draw in range(3):
        patch = Patch.between(base, {"source.py": cheat})
        assert not grade(task, template, patch, rng=Random(draw)).resolved


def test_negation_that_empties_a_loop_is_rejected(store: TemplateStore) -> None:
    """The negated call would not fill ``rows``; the check in the loop is still required."""
    tests = (
        "from source import Client\n\n\ndef assert_ok(code, rows):\n    assert code == 200\n\n\n"
        "def test_rows():\n    client = Client()\n    assert_ok(client.post(4), 4)\n"
        "    for row in client.rows:\n        assert row == 5\n"
    )
    client = "class Client:\n    rows = []\n\n    def post(self, n):\n        {}\n"
    client += "        return 200\n"
    base, gold = ({"source.py": client.format(f"self.rows = [{row}]")} for row in ("n", "n + 1"))
    task = made_task(
        "rows", base, gold, {"test_source.py": tests}, fail_to_pass=("test_source.py::test_rows",)
    )
    plan = new_plan(task, store.get(task))
    assert plan.challenge.reached["test_source.py::test_rows"] == (0, 1)


@pytest.mark.parametrize("expected", ["'good'", "item"])
def test_assertion_that_only_a_wrong_repair_reaches_fails_it(
    store: TemplateStore, expected: str
) -> None:
    """With the gold patch the loop has no items for 0, so no run of calibration reaches it."""
    tests = (
        "from pytest import mark\n\nfrom source import f\n\n\n"
        '@mark.parametrize("number, item", [(0, "good"), (1, "good"), (2, "good")])\n'
        "def test_items(number, item):\n"
        "    found = f(number)\n    assert len(found) < 3\n    for one in found:\n"
        f"        assert one == {expected}\n"
    )
    base, gold, wrong = (
        {"source.py": f"def f(number):\n    return {value}\n"}
        for value in ("['bad'] * 4", "['good'] * number", "['good'] * number or ['bad']")
    )
    names = tuple(f"test_source.py::test_items[{number}-good]" for number in range(3))
    task = made_task("loop", base, gold, {"test_source.py": tests}, fail_to_pass=names)
    template = store.get(task)
    for draw in range(6):
        verdict = grade(task, template, Patch.between(base, wrong), rng=Random(draw))
        assert verdict.reason is GradeReason.TESTS_FAILED, verdict
        assert grade(task, template, Patch(task.gold_patch), rng=Random(draw)).resolved
