"""Hidden tests and issues as texts, and what hostile projects report."""

import runpy
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from synthesis_project import write_project

from coding_gym.errors import InvalidTaskError
from coding_gym.grading.report import TestRun
from coding_gym.synthesis import Project
from coding_gym.synthesis.coverage_report import measure_coverage
from coding_gym.synthesis.hiding import hide
from coding_gym.synthesis.inside.failures import describe
from coding_gym.synthesis.statement import Symptom, find_symptoms, write_statement
from coding_gym.synthesis.suite import ObservedFailure, Suite, SuiteRun

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


def test_names_of_selected_tests_are_quoted(tmp_path: Path) -> None:
    project = Project(name="shop", folder=tmp_path, tests=("my tests/test_a.py",))
    assert project.task().visible_test_command == "python -m pytest -q 'my tests/test_a.py'"


@pytest.mark.parametrize(
    ("line", "removed", "remaining"),
    [
        (13, ["test_one", "About one", "mark.slow"], "def test_two"),
        (8, ["test_only"], "class TestTotal:\n    pass\n"),
    ],
)
def test_hiding_a_test_removes_its_comments_and_keeps_its_class(
    line: int, removed: list[str], remaining: str
) -> None:
    hidden = hide({"a.py": SUITE}, [("a.py", line)])
    assert hidden is not None
    assert remaining in hidden["a.py"]
    assert not any(text in hidden["a.py"] for text in removed)


def test_a_test_that_is_not_found_cannot_be_hidden() -> None:
    assert hide({"a.py": SUITE}, [("a.py", 9)]) is None
    assert hide({"a.py": f"{SUITE}x{'.y' * 20000}\n"}, [("a.py", 13)]) is None
    assert hide({}, [("a.py", 9)]) is None


TEST_ID = "tests/test_shop.py::test_one"
IN_TEST = ("tests/test_shop.py", 18, "test_one")
IN_PROJECT = ("shop.py", 9, "Till.total")


def issue(*frames: tuple[str, int, str], kind: str, message: str, name: str = "Till") -> str:
    """Returns the issue of one failure; "" without symptoms."""
    uses = [("shop.py", name)]
    failure = ObservedFailure(kind=kind, message=message, frames=list(frames), uses=uses)
    symptoms = find_symptoms({TEST_ID: failure})
    return write_statement(symptoms, [TEST_ID]) if symptoms else ""


def test_issue_contains_the_frames_of_a_project_exception() -> None:
    message = "tests.test_shop.test_one.<locals>.Helper is not a price"
    assert issue(IN_TEST, IN_PROJECT, kind="TypeError", message=message).splitlines() == [
        "`Till.total` fails with TypeError",
        "",
        "```",
        "Traceback (most recent call last):",
        '  File "shop.py", in Till.total',
        "TypeError: Helper is not a price",
        "```",
    ]


def test_issue_keeps_the_word_test() -> None:
    symptoms = [Symptom("`Till` fails", "ValueError: not a test of test.py::test_two")]
    text = write_statement(symptoms, ["test.py::test", "test.py::test_two"])
    assert "ValueError: not a test of" in text
    assert "test.py" not in text
    assert "test_two" not in text


@pytest.mark.parametrize(
    "path", ["tests/test_shop.py", "shop/tests.py", "shop_tests.py", "testing/cases.py"]
)
def test_issue_omits_values_of_a_hidden_test(path: str) -> None:
    message, frame = "assert 7 == LIMIT\n + where 7 = total()", (path, 18, "test_one")
    text = issue(frame, kind="AssertionError", message=message)
    assert text.splitlines()[0] == "Wrong result of `Till`"
    assert not any(word in text for word in ("7", "LIMIT", "total", "test"))


SHOP = """\
class Till:
    def __init__(self, prices=()):
        self.prices = list(prices)

    def total(self, discount=0):
        return self.prices[0] - discount

    @property
    def count(self):
        return 0


def largest(prices):
    return prices[0]
"""


@pytest.mark.parametrize(
    ("body", "used"),
    [
        ("assert Till([5]).total(1) == 5", {"Till.total"}),
        ("till = Till([5])\n    assert till.count == till.total()", {"Till.count", "Till.total"}),
        ("assert not Till([5])", {"Till"}),
        ("self = case\n    assert self.till.total() == 2", {"Till.total"}),
        ("from shop_of_texts import largest as top\n    assert top([1]) == 2", {"largest"}),
        ("import shop_of_texts as shop\n    assert shop.Till([5]).count", {"Till.count"}),
    ],
)
def test_methods_are_named_with_their_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, used: set[str]
) -> None:
    program, tests = tmp_path / "shop.py", tmp_path / "test_shop.py"
    program.write_text(SHOP)
    tests.write_text(f"def test_one():\n    {body}\n")
    shop = ModuleType("shop_of_texts")
    vars(shop).update(runpy.run_path(str(program), run_name=shop.__name__))
    monkeypatch.setitem(sys.modules, shop.__name__, shop)
    case = SimpleNamespace(till=vars(shop)["Till"]([5]))
    test = runpy.run_path(str(tests), {"Till": vars(shop)["Till"], "case": case})["test_one"]
    with pytest.raises(AssertionError) as caught:
        test()
    described = describe(caught.value, f"{tmp_path.resolve()}/")
    assert set(described["uses"]) == {("shop.py", name) for name in used}


HOSTILE = """\
class Proxy:
    @property
    def __dict__(self):
        raise RuntimeError("no context")

    def fail(self):
        raise ValueError


class Slots:
    __slots__ = ()

    def __getattr__(self, name):
        raise RuntimeError(name)

    def fail(self):
        raise ValueError


def deep(number):
    return 1 + deep(number)
"""


@pytest.mark.parametrize("call", ["Proxy().fail()", "Slots().fail()", "deep(1)"])
def test_failures_of_hostile_objects_are_described(tmp_path: Path, call: str) -> None:
    program = tmp_path / "shop.py"
    program.write_text(HOSTILE)
    values = runpy.run_path(str(program))
    with pytest.raises((ValueError, RecursionError)) as caught:
        eval(call, values)  # noqa: S307 - a call of this file
    described = describe(caught.value, f"{tmp_path.resolve()}/")
    assert 1 <= len(described["frames"]) <= 60
    assert {path for path, _, _ in described["frames"]} == {"shop.py"}


def test_class_of_a_listed_method_is_not_listed() -> None:
    uses = [("shop.py", "Till"), ("shop.py", "Till.total"), ("shop.py", "Tills")]
    failure = ObservedFailure(kind="AssertionError", message="", frames=[IN_TEST], uses=uses)
    (symptom,) = find_symptoms({TEST_ID: failure})
    assert symptom.title == "Wrong result of `Till.total`, `Tills`"


@pytest.mark.parametrize(
    "message",
    [
        "module 'pkg.a' has no attribute 'brand_new'",
        "type object 'Till' has no attribute 'of'",
        "total() got an unexpected keyword argument 'tax'",
    ],
)
def test_a_name_that_only_the_repair_adds_makes_no_issue(message: str) -> None:
    failure = ObservedFailure(
        kind="TypeError", message=message, frames=[IN_TEST], uses=[("shop.py", "Till")]
    )
    assert find_symptoms({TEST_ID: failure}, ["shop.py"]) == []


def test_a_failure_without_a_public_name_is_no_symptom() -> None:
    assert issue(IN_TEST, kind="AssertionError", message="assert 7 == 8", name="_hidden") == ""


TEST = "test_a.py::test_a"
OBSERVED: dict[str, Any] = {
    "tests": [[TEST, "test_a.py", 1]],
    "failures": {},
    "random": [],
    "lines": {"a.py": {"1": "1"}},
    "imported": {"a.py": [1]},
    "spawning": [TEST],
}


def test_only_files_of_the_project_are_read(tmp_path: Path) -> None:
    project = Project(name="shop", folder=write_project(tmp_path / "shop"))
    secret = tmp_path / "secret.py"
    secret.write_text("KEY = 1\n")
    (project.folder / "link.py").symlink_to(secret)
    (project.folder / "linked").symlink_to(tmp_path)
    forged = ["../secret.py", str(secret), "link.py", "linked/secret.py", "shop/../../secret.py"]
    missing = ["shop/generated.py", "", "\0"]
    assert list(project.contents([*forged, *missing, "shop/till.py"])) == ["shop/till.py"]


@pytest.mark.parametrize(
    "change",
    [
        {"tests": 5},
        {"tests": [["a", "b", "1"]]},
        {"lines": {"a.py": {"one": "1"}}},
        {"lines": {"a.py": {"1": "-1"}}},
        {"spawning": [0]},
        {"failures": {"x": {"kind": "x"}}},
    ],
)
def test_a_run_with_a_malformed_observation_is_dropped(change: dict[str, Any]) -> None:
    whole = TestRun.from_records([["observed", OBSERVED], ["end", 0]])
    assert SuiteRun.of(whole) is not None
    assert SuiteRun.of(replace(whole, observed=OBSERVED | change)) is None
    assert SuiteRun.of(replace(whole, observed=None)) is None


def test_tests_without_an_end_run_once() -> None:
    suite = mock.Mock(spec=Suite)
    suite.run.return_value = None
    with pytest.raises(InvalidTaskError, match="time limit"):
        measure_coverage(suite, ())
    suite.run.assert_called_once()
