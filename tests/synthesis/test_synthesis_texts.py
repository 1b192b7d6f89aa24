"""Hidden parts of the tests, and the text of the issue."""

import pytest

from coding_gym.synthesis.hiding import hide
from coding_gym.synthesis.observation import ObservedFailure
from coding_gym.synthesis.statement import find_symptoms, write_statement

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


TEST_ID = "tests/test_shop.py::test_one"
IN_TEST = ("tests/test_shop.py", 18, "test_one")
IN_PROJECT = ("shop.py", 9, "Till.total")


def issue(*frames: tuple[str, int, str], kind: str, message: str, name: str = "Till") -> str:
    """The issue of one failure; "" for none."""
    uses = [("shop.py", name)]
    failure = ObservedFailure(kind=kind, message=message, frames=list(frames), uses=uses)
    symptoms = find_symptoms({TEST_ID: failure})
    return write_statement(symptoms, [TEST_ID]) if symptoms else ""


def test_an_exception_of_the_project_comes_with_its_frames() -> None:
    message = "tests.test_shop.test_one.<locals>.Helper is not a price"
    assert issue(IN_TEST, IN_PROJECT, kind="TypeError", message=message).splitlines() == [
        "`total` fails with TypeError",
        "",
        "```",
        "Traceback (most recent call last):",
        '  File "shop.py", in Till.total',
        "TypeError: Helper is not a price",
        "```",
    ]


def test_issue_omits_values_of_a_hidden_test() -> None:
    text = issue(IN_TEST, kind="AssertionError", message="assert 7 == LIMIT\n + where 7 = total()")
    assert text.splitlines()[0] == "Wrong result of `Till`"
    assert not any(word in text for word in ("7", "LIMIT", "total", "test"))


def test_a_failure_without_a_public_name_is_no_symptom() -> None:
    assert issue(IN_TEST, kind="AssertionError", message="assert 7 == 8", name="_hidden") == ""
