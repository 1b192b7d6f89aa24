"""What is hidden of the tests, and what the issue says."""

from pathlib import Path
from typing import Any

import pytest

from coding_gym.synthesis.coverage_report import SuiteTest
from coding_gym.synthesis.hiding import hide
from coding_gym.synthesis.snippets import Snippet, find_snippet
from coding_gym.synthesis.statement import Symptom, find_symptoms, write_statement

SUITE = """\
import pytest
from shop import total

LIMIT = 3


class TestTotal:
    def test_only(self):
        assert total([]) == 0


# About one.
@pytest.mark.slow
def test_one(given):
    other = 1
    prices = [given]
    assert prices
    assert total(prices) == LIMIT


def test_two():
    with pytest.raises(KeyError):
        total({})
"""


def failure(line: int, kind: str = "AssertionError", message: str = "", **more: Any) -> Any:
    frames = [["tests/test_shop.py", line, "test_one"], ["shop.py", 9, "total"]]
    blank = {"when": "call", "values": {}, "owner": {}}
    return {"kind": kind, "message": message, "frames": frames, **blank, **more}


@pytest.mark.parametrize(
    ("line", "gone", "kept"),
    [
        (13, ["test_one", "About one", "mark.slow"], "def test_two"),
        (8, ["test_only"], "class TestTotal:\n    pass\n"),
    ],
)
def test_hiding_takes_comments_and_keeps_classes(line: int, gone: list[str], kept: str) -> None:
    hidden = hide({"a.py": SUITE}, [("a.py", line)])
    assert hidden is not None
    assert kept in hidden["a.py"]
    assert not any(text in hidden["a.py"] for text in gone)


def test_what_is_not_found_is_not_hidden() -> None:
    assert hide({"a.py": SUITE}, [("a.py", 9)]) is None
    assert hide({}, [("a.py", 9)]) is None


def test_the_snippet_holds_what_the_failing_call_needs_and_no_more() -> None:
    found = find_snippet(SUITE, 13, failure(18, values={"given": "7"}), "tests/test_shop.py")
    assert found is not None
    assert found.code.splitlines() == [
        "from shop import total",
        "LIMIT = 3",
        "given = 7",
        "prices = [given]",
        "total(prices)",
    ]
    assert found.expected == "LIMIT"


@pytest.mark.parametrize(
    ("check", "code", "expected"),
    [
        ("self.assertEqual(3, total([1]))", "total([1])", "3"),
        ("self.assertTrue(total([1]))", "total([1])", "True"),
        ("self.assertIn(1, total([1]))", "1 in total([1])", "True"),
    ],
)
def test_checks_of_unittest_become_plain_python(check: str, code: str, expected: str) -> None:
    found = snippet_of(f"class T:\n    def test_x(self):\n        {check}\n", 3)
    assert (found.code, found.expected) == (f"from shop import total\n{code}", expected)


CACHE = """\
import unittest
from shop import Cache, cached, total


def priced(text):
    return Wrapped(text)


class Wrapped:
    def __init__(self, text):
        self.text = text


class CacheTest(unittest.TestCase):
    Cache = Cache

    def setUp(self):
        self.limit = 3

    def test_raises(self):
        class Cached:
            def __init__(self, cache):
                self.cache = cache

            @cached(lambda self: self.cache)
            def get(self):
                return 1

        with self.assertRaises(TypeError):
            Cached.get()
        self.assertRaises(TypeError, Cached.get, key=1)
        self.assertRaisesRegex(KeyError, "no .*", Cached.get, 2)

    def test_same(self, key=total):
        self.assertEqual(key(1, x=0), key(1, x=0))
        self.assertFalse(key(1) or key(2))

    def test_counts(self):
        cache = self.Cache(self.limit)
        with self.assertRaises(KeyError):
            cache.pop(1)
        self.assertEqual(cache.get(1), None)
        self.assertEqual(cache.misses, 2)

    def test_helped(self):
        self.assertEqual(total(priced("1")), 1)
        self.assertEqual(total(self.thing), 1)
        total(self.thing)

    def test_several(self):
        with self.assertRaises(KeyError):
            cache = Cache(3)
            cache.pop(1)
"""


def line_of(text: str, call: str) -> int:
    """The first line that ends in a call."""
    return next(n for n, line in enumerate(text.splitlines(), 1) if line.endswith(call))


def start_of(text: str, at: int) -> int:
    """The line on which the test of a line begins."""
    lines = text.splitlines()[:at]
    return max(n for n, line in enumerate(lines, 1) if line.lstrip().startswith("def test_"))


def snippet_of(text: str, at: int, kind: str = "AssertionError", **more: Any) -> Snippet:
    """The snippet of the test that fails at a line."""
    text = text if "import" in text else f"{text}from shop import total\n"
    found = find_snippet(text, start_of(text, at), failure(at, kind, **more), "tests/test_shop.py")
    assert found is not None
    return found


def seen_at(call: str, kind: str = "AssertionError", **more: Any) -> Snippet:
    return snippet_of(CACHE, line_of(CACHE, call), kind, **more)


@pytest.mark.parametrize(
    ("call", "last", "raises"),
    [
        ("    Cached.get()", "Cached.get()", "TypeError"),
        ("Cached.get, key=1)", "Cached.get(key=1)", "TypeError"),
        ("Cached.get, 2)", "Cached.get(2)", "KeyError"),
        ("    cache = Cache(3)", "cache.pop(1)", "KeyError"),
    ],
)
def test_what_should_raise_is_never_expected_to_work(call: str, last: str, raises: str) -> None:
    found = seen_at(call, "KeyError")
    assert (found.code.splitlines()[-1], found.raises) == (last, raises)
    text = write_statement([Symptom("t", found, failure(3, "KeyError"))], (), ["t"])
    assert f"I expect {raises}" in text
    assert "to work" not in text


def test_what_the_message_should_hold_is_said() -> None:
    found = seen_at("Cached.get, 2)")
    text = write_statement([Symptom("t", found, failure(3))], (), ["t"])
    assert "I expect KeyError with a message that matches `'no .*'`, but" in text


def test_a_class_of_the_test_is_shown_as_it_is() -> None:
    code = seen_at("    Cached.get()", "KeyError").code
    assert code.startswith("from shop import cached\n")
    assert "        self.cache = cache\n" in code
    assert "@cached(lambda self: self.cache)\n" in code


def test_a_check_of_several_parts_keeps_its_meaning() -> None:
    found = seen_at("key(1, x=0))")
    assert found.expected == "True"
    assert found.code == "from shop import total\nkey = total\nkey(1, x=0) == key(1, x=0)"
    assert seen_at("key(2))").code.endswith("\nnot (key(1) or key(2))")


def test_what_earlier_checks_did_is_done() -> None:
    found = seen_at("misses, 2)", owner={"Cache": "shop.Cache"})
    assert found.code == (
        "from shop import Cache\nlimit = 3\ncache = Cache(limit)\n"
        "try:\n    cache.pop(1)\nexcept KeyError:\n    pass\ncache.get(1)\ncache.misses"
    )


def test_helpers_of_the_test_file_come_with_what_they_name() -> None:
    code = seen_at("), 1)").code
    assert "def priced(text):" in code
    assert "class Wrapped:\n" in code
    assert "        self.text = text\n" in code
    assert code.endswith("total(priced('1'))")


@pytest.mark.parametrize(
    ("kind", "said"), [("AssertionError", "I expect `1`"), ("KeyError", "I expect it to work")]
)
def test_code_that_only_runs_in_the_test_is_not_shown(kind: str, said: str) -> None:
    found = seen_at("self.thing), 1)", kind)
    assert (found.code, found.callee) == ("", "total")
    text = write_statement([Symptom("t", found, failure(3, kind))], (), ["t"])
    assert "This is about a call of `total`." in text
    assert said in text
    assert "thing" not in text


def test_code_that_runs_as_it_stands_is_told_first() -> None:
    seen, tests = {}, {}
    for name, call in (("t0", "self.thing), 1)"), ("t1", "key(1, x=0))")):
        at = line_of(CACHE, call)
        seen[name] = failure(at)
        tests[name] = SuiteTest(name, "tests/test_shop.py", start_of(CACHE, at), True)
    symptoms = find_symptoms(seen, tests, {"tests/test_shop.py": CACHE})
    assert [symptom.test_id for symptom in symptoms] == ["t1", "t0"]


def test_the_issue_names_no_test_and_no_line_of_the_project() -> None:
    test_id = "tests/test_shop.py::test_one"
    message = "tests.test_shop.test_one.<locals>.Helper is not a price"
    seen = {test_id: failure(18, "TypeError", message, values={"given": "7"})}
    tests = {test_id: SuiteTest(test_id, "tests/test_shop.py", 13, True)}
    symptoms = find_symptoms(seen, tests, {"tests/test_shop.py": SUITE})
    text = write_statement(symptoms, (), [test_id])
    assert text.startswith("`total` fails with TypeError\n\nWhen I run this:\n")
    assert "TypeError: Helper is not a price" in text
    assert 'File "shop.py", in total\n' in text
    assert "test_" not in text


def test_a_copy_in_the_environment_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coding_gym.synthesis.inside.line_coverage import find_copies

    inside, installed = tmp_path / "tree" / "shop.py", tmp_path / "env" / "lib" / "shop.py"
    for path in (inside, installed):
        path.parent.mkdir(parents=True)
        path.write_text("PRICE = 3\n")
    monkeypatch.setattr("sys.prefix", str(tmp_path / "env"))
    monkeypatch.setattr("sys.path", [])
    assert find_copies(f"{tmp_path}/tree/", {str(inside)}) == [str(installed)]
    installed.write_text("PRICE = 4\n")
    assert find_copies(f"{tmp_path}/tree/", {str(inside)}) == []
