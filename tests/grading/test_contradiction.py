"""A test turned against itself fails exactly where it passed, and looks like any other."""

import ast
import datetime
import decimal
import unittest
from random import Random
from unittest import mock

import pytest

from coding_gym.grading.canaries import Turned, contradict
from coding_gym.grading.wrong_values import make_wrong

# What a test says last, and what of it is still there when it asks for something else.
CHECKS = [
    ("assert f(3) == 4", "assert f(3) == "),
    ("assert f(3) != 5", "assert f(3) == 5"),
    ("assert 4 == f(3)", " == f(3)"),
    ("assert f(3) < 5", "assert f(3) >= 5"),
    ("assert f(3) >= 4", "assert f(3) < 4"),
    ("assert f(3) in [4, 5]", "assert f(3) not in [4, 5]"),
    ("assert f(3) not in {5}", "assert f(3) in {5}"),
    ("assert f(3) is not None", "assert f(3) is None"),
    ("assert 3 < f(3) < 5", "assert not (3 < f(3) < 5)"),
    ("assert f(3)", "assert not f(3)"),
    ("assert not f(-1)", "assert f(-1)"),
    ("assert f(3) and f(4)", "assert not (f(3) and f(4))"),
    ("assert not (f(-1) or\n        f(-1))", "assert (f(-1) or\n        f(-1))"),
    ("assert f(3) == found, 'said'", ", 'said'"),
    ("assert found == {'a': [4, 'b']} or f(3) == 4", "assert not (found == "),
    ("self.assertEqual(f(3), 4)", "self.assertEqual(f(3), "),
    ("self.assertEqual(f(3), 4, 'said')", "self.assertNotEqual(f(3), 4, 'said')"),
    ("self.assertTrue(f(3))", "self.assertFalse(f(3))"),
    ("self.assertIn(f(3), [4])", "self.assertNotIn(f(3), [4])"),
    ("self.assertGreater(f(3), 3)", "self.assertLessEqual(f(3), 3)"),
    ("self.assertIsInstance(f(3), int)", "self.assertNotIsInstance(f(3), int)"),
    ("self.assertAlmostEqual(f(3), 4.1, delta=1)", "self.assertNotAlmostEqual(f(3), 4.1, delta=1)"),
    ("self.assertRaises(TypeError, f, None)", "Error, f, None)"),
    ("with self.assertRaises(TypeError):\n        f(None)", "Error):\n        f(None)"),
    ("with pytest.raises((TypeError, ValueError)):\n        f(None)", "Error):\n        f(None)"),
    ("with open('/dev/null'):\n        assert f(3) == 4\n        f(3)", "assert f(3) == "),
    ("assert f(3) == 4\n    print(f)", "assert f(3) == "),
    ("mock.Mock(side_effect=f)(3).real.bit_length() == 3\n    assert f(9)", "assert not f(9)"),
]


def turned(body: str, seed: int, head: str = "def test_a():") -> str:
    source = f"{head}\n    found = 4\n    {body}\n"
    found = contradict({"test_x.py": source.encode()}, ["test_x.py::test_a"], Random(seed))
    assert found.tests == ("test_x.py::test_a",)
    return found.changed["test_x.py"].decode()


def run(source: str) -> None:
    """Runs the test of a source, which may use what tests use."""

    def f(x: int) -> int:
        return max(x + 1, 0)

    space = {"f": f, "mock": mock, "self": unittest.TestCase(), "pytest": pytest}
    exec(compile(source, "test_x.py", "exec"), space)  # noqa: S102 — source of this file
    space["test_a"]()  # type: ignore[operator]


@pytest.mark.parametrize(("body", "left"), CHECKS, ids=[body for body, _ in CHECKS])
def test_it_fails_where_it_passed_by_its_own_check(body: str, left: str) -> None:
    run(f"def test_a():\n    found = 4\n    {body}\n")
    for seed in range(8):
        changed = turned(body, seed)
        assert left in changed
        assert changed.count("\n") <= body.count("\n") + 3
        with pytest.raises((AssertionError, TypeError, pytest.fail.Exception)):
            run(changed)


@pytest.mark.parametrize(
    "body",
    [
        "if found:\n        return\n    assert f(3) == 4",
        "for x in [3]:\n        assert f(x) == 4",
        "with pytest.raises(Exception):\n        f(None)",
        "print(found)",
    ],
)
def test_one_without_a_check_of_its_own_to_turn_fails_at_its_end(body: str) -> None:
    for seed in range(8):
        changed = turned(body, seed)
        kept = [line.strip() for line in changed.splitlines()]
        assert [line.strip() for line in body.splitlines() if line.strip() not in kept] == []
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            run(changed)


def test_those_that_might_pass_all_the_same_are_left_alone() -> None:
    cases = [
        "@pytest.mark.xfail\ndef test_a():\n    assert f() == 3\n",
        "@unittest.expectedFailure\ndef test_a():\n    assert f() == 3\n",
        "@flaky\ndef test_a():\n    assert f() == 3\n",
        "def test_a():\n    yield\n    assert f() == 3\n",
        "def test_a():\n    assert f() == 3\n\n\ndef test_a():\n    assert f() == 4\n",
        "def test_b():\n    assert f() == 3\n",
        "print 'another Python'\n",
    ]
    for source in cases:
        files = {"test_x.py": source.encode()}
        assert contradict(files, ["test_x.py::test_a"], Random(0)) == Turned(), source


def test_coroutines_and_short_tests_are_turned_too() -> None:
    assert "assert await f() == 3" not in turned("assert await f() == 3", 0, "async def test_a():")
    files = {"test_x.py": b"def test_a(): assert f() == 3\n"}
    found = contradict(files, ["test_x.py::test_a"], Random(0))
    assert found.changed["test_x.py"].startswith(b"def test_a(): assert f() == ")


def test_only_the_tests_that_are_named_change() -> None:
    source = "".join(
        f"class Test{one}:\n    def test_a(self):\n        assert f({one}) == '{one} é'\n\n\n"
        for one in range(3)
    )
    ids = ["test_x.py::Test1::test_a", "test_x.py::Test2::test_a[x]", "gone.py::test_a"]
    found = contradict({"test_x.py": source.encode(), "y.py": b""}, ids, Random(0))
    assert set(found.tests) == {"test_x.py::Test1::test_a", "test_x.py::Test2::test_a"}
    lines = zip(source.split("\n"), found.changed["test_x.py"].decode().split("\n"), strict=True)
    assert [number for number, (old, new) in enumerate(lines) if old != new] == [7, 12]


def test_a_wrong_value_is_never_right_and_mostly_looks_it() -> None:
    cases = [
        *("0", "1", "17", "-3", "0.5", "1e-9", "True", "'a'", '"two words"', "b'x'", "r'\\d'"),
        *("[1, 'two', None]", "{'a': 1, 'b': [2]}", "(1, (2, 3))", "{1, 2}", "Decimal('1.10')"),
        *("date(2020, 1, 2)", "3 + 4", "''", "[]", "{}", "()", "None", "'\\n'", "1_000", "0x1f"),
        *("'a' 'b'", "[\n    1,\n    2,\n]", "'''one\n  two'''"),
    ]
    for value in cases:
        space = {"Decimal": decimal.Decimal, "date": datetime.date}
        source = f"x = {value}\n"
        expected = ast.parse(source).body[0].value  # type: ignore[attr-defined]
        lines = source.splitlines(keepends=True)
        right = eval(f"({value})", dict(space))  # noqa: S307 — source of this file
        for seed in range(60):
            changed = "".join(make_wrong(lines, expected, Random(seed)))
            try:
                wrong = eval(changed.partition("=")[2].strip(), dict(space))  # noqa: S307
            except ValueError:  # no such day
                continue
            assert wrong != right, value
            if right and value != "'\\n'":
                assert type(wrong) is type(right), value
                assert abs(len(changed) - len(source)) < 20, value


@pytest.mark.parametrize(
    "expected", ["decimal.DivisionByZero", "MyError", "(KeyError, MyError)", "errors[0]"]
)
def test_an_error_that_may_be_of_any_kind_is_not_asked_to_be_another(expected: str) -> None:
    """`DivisionByZero` is a `ZeroDivisionError`: asking for that would still pass."""
    for seed in range(20):
        assert f"pytest.raises({expected}):" in turned(
            f"with pytest.raises({expected}):\n        f(1)", seed
        )
