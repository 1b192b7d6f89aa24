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


CACHE = """\
import unittest
from shop import Cache, cached, total


class CacheTest(unittest.TestCase):
    def test_raises(self):
        class Cached:
            @cached(lambda self: self.cache)
            def get(self):
                return 1

        with self.assertRaises(TypeError):
            Cached.get()
        self.assertRaises(TypeError, Cached.get, key=1)
        self.assertRaisesRegex(KeyError, "no .*", Cached.get, 2)

    def test_helped(self):
        self.assertEqual(total(self.thing), 1)

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
