"""Negated tests fail where the tests pass, on the same lines, and clean up as they do."""

import contextlib
import unittest
import warnings
from random import Random
from unittest import mock

import pytest

from coding_gym.grade import Level
from coding_gym.grading.negation import Negation, TestFile

# What a test says, and the level of its strongest negation that needs no gold patch.
CHECKS = {
    "assert f(3) == 4": "value",
    "assert 4 == f(3)": "value",
    "assert f(3) == found + 0": "value",
    "assert f(3) is not None and f(3) == 4": "value",
    "assert f(3) == f(3) == 4": "value",
    "assert 4 in [f(3)]": "polarity",
    "assert (f(3) == 4) is True": "value",
    "assert f(3) == f(int('3'))": "value",
    "assert f(3) == (4\n        + 0), 'said'": "value",
    "for x, y in [(3, 4), (1, 2)]:\n        assert f(x) == y": "polarity",
    "with open('/dev/null'):\n        assert f(3) == 4\n        f(3)": "value",
    "try:\n        assert f(3) == 4\n    finally:\n        log.append(1)": "value",
    "self.assertEqual(f(3), 4, 'said')": "value",
    "same(f(3), 4)": "value",
    "send('a', urgent=True)\n    send.assert_called_once_with('a', urgent=True)": "value",
    "send(f'a{f(3)}b')\n    send.assert_called_once_with(f'a{found}'\n        f'b')": "value",
    "with pytest.raises(TypeError):\n        f(None)": "error",
    "with open('/dev/null'), pytest.raises((TypeError, OSError)):\n        f(None)": "error",
    "self.assertRaises(TypeError, f, None)": "error",
    "with pytest.warns(UserWarning):\n        warnings.warn('x')": "error",
    "assert f(3) == found": "polarity",
    "assert f(3) != 5": "polarity",
    "assert f(3) < 5": "polarity",
    "assert not (f(-1) or\n        f(-1))": "polarity",
    "self.assertTrue(f(3))": "polarity",
    "self.assertAlmostEqual(f(3), 4.1, delta=1)": "value",
    "if found:\n        return\n    assert f(3) == 4": "value",
    "for x in range(f(1)):\n        assert f(x) < 5": "end",
    "for x in [3]:\n        if x:\n            continue\n        assert f(x) == 4": "end",
    "with contextlib.suppress(ValueError):\n        assert f(3) == 4": "end",
    "print(found)": "end",
}
HEAD = "def same(one, two):\n    assert one == two\n\n\n"
TAIL = "\n\ndef test_b():\n    assert f(1) == 2\n"


def f(x: int) -> int:
    return max(x + 1, 0)


def run(source: str, log: list[int]) -> None:
    """Runs the test of a source, which may use what tests use, and logs into a list."""
    space = {"f": f, "send": mock.Mock(), "self": unittest.TestCase(), "pytest": pytest}
    space |= {"log": log, "warnings": warnings, "contextlib": contextlib}
    exec(compile(source, "test_x.py", "exec"), space)  # noqa: S102 — source of this file
    space["test_a"]()  # type: ignore[operator]


def read(body: str, head: str = "def test_a():") -> tuple[TestFile, str]:
    source = f"{HEAD}{head}\n    found = 4\n    {body}\n{TAIL}"
    return TestFile(source.encode()), source


def versions(file: TestFile, number: int, seed: int) -> tuple[str, str]:
    """The plain and the negated version of a test."""
    negations = {"test_a": Negation(number=number)}
    plain, negated = (
        file.rewritten(negations, negated, Random(seed)).decode() for negated in ((), ("test_a",))
    )
    return plain, negated


@pytest.mark.filterwarnings("ignore:x")
@pytest.mark.parametrize(("body", "level"), CHECKS.items(), ids=CHECKS.keys())
def test_a_negated_test_fails_where_the_plain_one_passes(body: str, level: str) -> None:
    file, source = read(body)
    candidates = file.candidates("test_a")
    sure = (
        n for n in file.usable("test_a") if candidates[n].is_sure or candidates[n].level == level
    )
    number = next(sure)
    assert candidates[number].level == level
    errors = (AssertionError, TypeError, Warning, pytest.fail.Exception)
    for seed in range(12):
        plain, negated = versions(file, number, seed)
        assert negated.count("\n") == plain.count("\n") == source.count("\n")
        assert negated.endswith(TAIL)
        if "return" not in body:
            run(plain, [])
        with pytest.raises(errors):
            run(negated, [])


def test_what_a_test_does_after_its_check_still_happens() -> None:
    bodies = (
        "assert f(3) == 4\n    log.append(1)",
        "assert f(3) == 4\n    log.append(\n        1)\n    # said\n    log.append(2)",
        "with pytest.raises(TypeError):\n        f(None)\n    log.append(1)",
    )
    for body in bodies:
        file, source = read(body)
        for number in file.usable("test_a"):
            if not file.candidates("test_a")[number].is_sure:
                continue
            plain, negated = versions(file, number, number)
            assert plain.count("\n") == source.count("\n")
            logs: list[list[int]] = [[], []]
            run(plain, logs[0])
            with pytest.raises(AssertionError):
                run(negated, logs[1])
            assert logs[0] == logs[1], negated


def test_line_ends_encodings_and_other_tests_stay() -> None:
    data = "# coding: latin-1\r\ndef test_a():\r\n    assert g('é') == 'é1'\r\n".encode("latin-1")
    file = TestFile(data)
    changed = file.rewritten({"test_a": Negation(number=0)}, {"test_a"}, Random(0))
    assert changed.startswith(data[: data.index(b"==")])
    assert b"\n" not in changed.replace(b"\r\n", b"")
    assert changed != data


def test_a_generator_is_not_negated_and_a_coroutine_is() -> None:
    assert read("yield\n    assert f() == 3")[0].candidates("test_a") == ()
    file, _ = read("assert await f() == 3", "async def test_a():")
    assert file.candidates("test_a")[0].level is Level.VALUE


def test_errors_of_a_project_may_be_of_any_kind() -> None:
    """Which ones they are not is for the gold patch to show; Python's own tell it themselves."""

    def names(error: str, *, is_sure: bool) -> set[str]:
        file, _ = read(f"with pytest.raises({error}):\n        f(1)")
        found = [one for one in file.candidates("test_a") if one.level is Level.ERROR]
        assert all(one.is_sure is is_sure for one in found)
        number = file.candidates("test_a").index(found[0]) if found else 0
        texts = [versions(file, number, seed)[1] for seed in range(80)] if found else []
        return {text.partition("raises(")[2].partition(")")[0] for text in texts}

    assert {"ValueError", "ZeroDivisionError"} <= names("decimal.DivisionByZero", is_sure=False)
    known = names("ArithmeticError", is_sure=True)
    assert known.isdisjoint({"ZeroDivisionError", "OverflowError"})
    assert names("Exception", is_sure=True) == set()
    file, _ = read("with pytest.raises(Odd):\n        f(1)")
    known = {"test_a": Negation(number=0, seeds=(3,))}  # a draw that is known to fail
    assert len({file.rewritten(known, {"test_a"}, Random(seed)) for seed in range(9)}) == 1


def test_inequalities_are_not_negated_by_other_inputs() -> None:
    """Another repair than the gold patch may well do something else with these."""
    for body in ("assert f(3)", "assert f(3) < 5", "assert 4 in [f(3)]", "self.assertTrue(f(3))"):
        file, _ = read(body)
        assert all(one.is_sure for one in file.candidates("test_a")), body


_TABLES = {
    "[(1, 2), (3, 4)]": 2,
    "((1, 2), pytest.param(3, 4, id='a'))": 2,
    "[(1, 2), (3, 4)], ids=['a', 'b']": 2,
    "[(1, two), (3, 4)]": 1,
    "[(1, 2), *more]": 0,
}


@pytest.mark.parametrize(("rows", "columns"), _TABLES.items())
def test_parameters_are_changed_under_names_that_do_not_tell(rows: str, columns: int) -> None:
    source = f"@pytest.mark.parametrize('x, y', {rows})\ndef test_a(x, y):\n    assert f(x) == y\n"
    file = TestFile(source.encode(), renames=True)
    found = [n for n in file.usable("test_a") if file.candidates("test_a")[n].table]
    assert len(found) == columns
    assert all(one.table is None for one in TestFile(source.encode()).candidates("test_a"))
    for number in found:
        plain, negated = versions(file, number, 1)
        assert ("ids=" in plain, "ids=" in negated) == (True, True)
        if "ids" not in rows:
            assert plain.split("ids=")[0].startswith(source.split(rows)[0] + rows)
