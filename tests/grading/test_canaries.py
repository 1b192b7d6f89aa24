import ast
import datetime
import decimal
import unittest
from random import Random
from unittest import mock

import pytest
from cart_task import HIDDEN, TASK

from coding_gym.grading.canaries import Turned, contradict, plant
from coding_gym.grading.suite_file import Canary
from coding_gym.grading.wrong_values import make_wrong

PATH = "tests/test_discounts.py"
FILES = {PATH: HIDDEN[PATH].encode()}


def planted(
    source: str, *names: str, seed: int = 0, avoid: frozenset[str] = frozenset()
) -> tuple[tuple[Canary, ...], str]:
    """Plants into one file, whose named tests are those that the bug breaks."""
    ids = [f"test_x.py::{name}" for name in names]
    canaries, changed = plant({"test_x.py": source.encode()}, ids, [], Random(seed), avoid=avoid)
    return canaries, changed.get("test_x.py", b"").decode()


def call(source: str, canary: Canary) -> None:
    """Runs a canary that is a plain function without arguments."""
    space: dict[str, object] = {}
    exec(compile(source, "test_x.py", "exec"), space)  # noqa: S102 — source of this file
    space[canary.name]()  # type: ignore[operator]


def test_every_test_stays_as_it_was_and_the_canaries_come_after_them() -> None:
    before = ast.parse(HIDDEN[PATH])
    for seed in range(20):
        canaries, changed = plant(FILES, TASK.fail_to_pass, TASK.pass_to_pass, Random(seed))
        after = ast.parse(changed[PATH])
        names = {canary.name.rpartition("::")[2] for canary in canaries}
        assert len(names) == 2, seed
        for owner in ast.walk(after):
            if isinstance(owner, ast.Module | ast.ClassDef):
                kept = [n for n in owner.body if getattr(n, "name", "") not in names]
                if not isinstance(owner, ast.Module):
                    assert owner.body[: len(kept)] == kept, seed
                owner.body = kept
        assert ast.dump(after) == ast.dump(before), seed


def test_canaries_copy_tests_that_the_bug_breaks_under_names_that_are_new() -> None:
    broken = {test.partition("[")[0] for test in TASK.fail_to_pass}
    draws = set()
    for seed in range(20):
        canaries, changed = plant(FILES, TASK.fail_to_pass, TASK.pass_to_pass, Random(seed))
        draws.add(changed[PATH])
        for canary in canaries:
            name = canary.name.rpartition("::")[2]
            assert canary.original_id in broken, seed
            assert name not in HIDDEN[PATH], seed
            assert name.startswith("test_"), seed
            assert f"def {name}(" in changed[PATH].decode(), seed
    assert len(draws) > 15  # another draw gives others


@pytest.mark.parametrize(
    "body",
    [
        "    assert True\n",
        "    return\n",
        "    if True:\n        return\n    assert False\n",
        '    """What it is for."""\n    text = """one\ntwo\n  three"""\n    return text\n',
        "    for value in range(3):\n        if value:\n            return\n",
        "    @staticmethod\n    def inner():\n        return 1\n    assert inner.__func__() == 1\n",
        "\tassert True\n",
        "    # a comment first\n\n    assert True  # and last",
    ],
)
def test_a_canary_of_a_test_that_passes_fails(body: str) -> None:
    for seed in range(40):
        canaries, changed = planted(f"def test_a():\n{body}", "test_a", seed=seed)
        assert len(canaries) == 2
        for canary in canaries:
            with pytest.raises(AssertionError):
                call(changed, canary)


def test_ends_follow_the_idiom_of_the_test_so_that_silencing_it_is_found_out() -> None:
    source = (
        "import pytest, unittest\n\n\n"
        "def test_a():\n    with pytest.raises(KeyError):\n        {}[1]\n\n\n"
        "class TestB(unittest.TestCase):\n"
        "    def test_b(self):\n        self.assertEqual(1, 1)\n"
    )
    texts = [planted(source, "test_a", "TestB::test_b", seed=seed)[1] for seed in range(40)]
    assert any(text.count("pytest.raises(") == 3 for text in texts)
    assert all(text.count("self.assertEqual(") == 2 for text in texts)
    assert any("\n    assert " in text for text in texts)


def test_one_canary_fails_as_its_test_would() -> None:
    cases = [
        ("with pytest.raises(KeyError):\n            {}[1]", "with pytest.raises("),
        ("with self.assertRaises(KeyError):\n            {}[1]", "with self.assertRaises("),
        ("self.assertEqual(1, 1)\n        self.fail", "self.assertEqual("),
    ]
    for body, call in cases:
        source = f"class TestA(unittest.TestCase):\n    def test_a(self):\n        {body}\n"
        for seed in range(20):
            _, changed = planted(source, "TestA::test_a", seed=seed)
            # The test itself, two copies of it, and the end of one of them at least.
            assert changed.count(call) >= 4, body


@pytest.mark.parametrize(
    ("last", "left"),
    [
        ("assert f(3) == 4", "assert f(3) == "),
        ("assert 4 == f(3)", " == f(3)"),
        ("assert f(3) == approx(4)", "assert f(3) == approx("),
        ("assert f(3) == approx(4, abs=1e9)", "assert f(3) == "),
        ('assert f(3) == ("é"\n        "b"), "said"', "assert f(3) == ("),
        ("assert found == g(3), 'é'", "assert found == "),
        ("self.assertEqual(f(3), 4)", "self.assertEqual(f(3), "),
        ("assert f(3) == [\n        4,\n    ]", "assert f(3) == ["),
    ],
)
def test_one_canary_asks_the_last_comparison_for_another_value(last: str, left: str) -> None:
    source = f"def test_a(self=None):\n    found = 'é'\n    {last}\n"
    for seed in range(20):
        canaries, changed = planted(source, "test_a", seed=seed)
        (text,) = (
            ast.get_source_segment(changed, node) or ""
            for node in ast.parse(changed).body
            if getattr(node, "name", "") == canaries[0].name
        )
        assert left in text
        assert not text.endswith(last)


def test_comparisons_that_another_value_could_pass_are_left_alone() -> None:
    cases = [
        "assert approx(4, abs=1e9) == f(3)",
        "assert ANY == f(3)",
        "assert f(3) == 4 == 4",
        "assert f(3) != 4",
        "assert f(3)",
        "for x in ():\n        assert f(x) == 4",
        "if f(3):\n        return\n    assert f(3) == 4",
        "self.assertEqual(f(3), 4, 'said')",
        "self.assertEqual(*f(3), 4)",
    ]
    for body in cases:
        source = f"def test_a(self=None):\n    {body}\n"
        for seed in range(20):
            _, changed = planted(source, "test_a", seed=seed)
            assert changed.count(body.split("\n")[-1].strip()) == 3, body


# Tests that may pass whatever they end with.
UNSAFE = [
    "def test_a():\n    yield\n    assert f() == 3\n",
    "import pytest\n\n\n@pytest.mark.xfail\ndef test_a():\n    assert f() == 3\n",
    "def test_a():\n    assert f() == 3\n\n\ndef test_a():\n    assert f() == 4\n",
    "def test_b():\n    assert f() == 3\n",
    "print 'another Python'\n",
]


def test_what_cannot_be_copied_safely_is_left_alone() -> None:
    cases = [
        *UNSAFE,
        "async def test_a():\n    pass\n",
        "def test_a(): pass\n",
        "import pytest\n\n\n@pytest.mark.skipif(True, reason='')\ndef test_a():\n    pass\n",
        "\0",
        "# coding: unknown\n",
    ]
    for source in cases:
        assert planted(source, "test_a") == ((), ""), source


def test_a_test_that_made_a_bad_canary_is_not_chosen_again() -> None:
    source = "def test_a():\n    pass\n\n\ndef test_b():\n    pass\n"
    avoid = frozenset({"test_x.py::test_a"})
    for seed in range(10):
        canaries, _ = planted(source, "test_a", "test_b", seed=seed, avoid=avoid)
        assert {canary.original for canary in canaries} == {"test_b"}
    # No file gets out of having a canary by losing them all.
    canaries, _ = planted(source, "test_a", avoid=avoid)
    assert {canary.original for canary in canaries} == {"test_a"}


def test_line_ends_and_encoding_of_the_file_are_kept() -> None:
    data = "# coding: latin-1\r\ndef test_a():\r\n    assert 'é'\r\n".encode("latin-1")
    _, changed = plant({"test_x.py": data}, ["test_x.py::test_a"], [], Random(0))
    text = changed["test_x.py"].decode("latin-1")
    assert text.startswith(data.decode("latin-1"))
    assert text.count("'é'") == 3
    assert "\n" not in text.replace("\r\n", "")


def test_every_file_with_expected_tests_gets_a_canary() -> None:
    files = {f"test_{n}.py": b"def test_a():\n    pass\n" for n in range(4)}
    canaries, changed = plant(
        files, ["test_0.py::test_a"], [f"{p}::test_a" for p in files], Random(1)
    )
    assert changed.keys() == files.keys()
    assert len(canaries) == 4


@pytest.mark.parametrize("tail", ["", "\n\nVALUE = 3\n", "\n\ndef helper():\n    return 3\n"])
def test_canaries_stand_in_the_class_or_module_of_their_tests(tail: str) -> None:
    source = (
        "def test_a():\n    assert f() == 3\n\n\n"
        "class TestOuter:\n"
        "    class TestInner:\n"
        "        def test_b(self):\n            assert f() == 4\n\n"
        "        def test_c(self):\n            assert f() == 5\n" + tail
    )
    names = ("test_a", "TestOuter::TestInner::test_b", "TestOuter::TestInner::test_c")
    for seed in range(60):
        canaries, text = planted(source, *names, seed=seed)
        places = {}
        for owner in ast.walk(ast.parse(text)):
            if isinstance(owner, ast.Module | ast.ClassDef):
                name = getattr(owner, "name", "")
                places |= {n.name: name for n in owner.body if isinstance(n, ast.FunctionDef)}
        for canary in canaries:
            _, _, own = canary.name.rpartition("::")
            wanted = "TestInner" if "TestInner" in canary.name else ""
            assert places.get(own) == wanted, text


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
    decorated = [
        f"@{name}\ndef test_a():\n    assert f() == 3\n"
        for name in ("unittest.expectedFailure", "flaky")
    ]
    for source in [*UNSAFE, *decorated]:
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
