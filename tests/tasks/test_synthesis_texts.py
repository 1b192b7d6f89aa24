"""What is hidden of the tests, and what the issue says."""

from pathlib import Path
from typing import Any

import pytest

from coding_gym.errors import TemplateError
from coding_gym.tasks.synthesis.hiding import hide
from coding_gym.tasks.synthesis.pypi import unpack
from coding_gym.tasks.synthesis.snippets import find_snippet
from coding_gym.tasks.synthesis.statement import find_symptoms, write_statement
from coding_gym.tasks.synthesis.survey import SuiteTest

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


def test_a_hidden_function_leaves_with_its_comment_and_decorators() -> None:
    hidden = hide({"a.py": SUITE}, [("a.py", 13)])
    assert hidden is not None
    assert "test_one" not in hidden["a.py"]
    assert "About one" not in hidden["a.py"]
    assert "mark.slow" not in hidden["a.py"]
    assert "def test_two" in hidden["a.py"]


def test_a_class_that_loses_all_stays_a_class() -> None:
    hidden = hide({"a.py": SUITE}, [("a.py", 8)])
    assert hidden is not None
    assert "class TestTotal:\n    pass\n" in hidden["a.py"]


def test_what_is_not_found_is_not_hidden() -> None:
    assert hide({"a.py": SUITE}, [("a.py", 9)]) is None
    assert hide({}, [("a.py", 9)]) is None


def test_the_snippet_holds_what_the_failing_call_needs_and_no_more() -> None:
    found = find_snippet(SUITE, 13, failure(18, values={"given": "7"}), "tests/test_shop.py")
    assert found is not None
    assert found.code.splitlines() == [
        "from shop import total",
        "given = 7",
        "prices = [given]",
        "total(prices)",
    ]
    assert found.expected == "LIMIT"


def test_an_exception_that_does_not_come_is_what_is_expected() -> None:
    found = find_snippet(SUITE, 21, failure(22, "Failed"), "tests/test_shop.py")
    assert found is not None
    assert (found.raises, found.code.splitlines()[-1]) == ("KeyError", "total({})")


@pytest.mark.parametrize(
    ("check", "code", "expected"),
    [
        ("self.assertEqual(3, total([1]))", "total([1])", "3"),
        ("self.assertTrue(total([1]))", "total([1])", "True"),
        ("self.assertIn(1, total([1]))", "1 in total([1])", "True"),
    ],
)
def test_checks_of_unittest_become_plain_python(check: str, code: str, expected: str) -> None:
    text = f"class T:\n    def test_x(self):\n        {check}\n"
    found = find_snippet(text, 2, failure(3), "tests/test_shop.py")
    assert found is not None
    assert (found.code, found.expected) == (code, expected)


def test_the_issue_names_no_test_and_no_line_of_the_project() -> None:
    test_id = "tests/test_shop.py::test_one"
    message = "tests.test_shop.test_one.<locals>.Helper is not a price"
    seen = {test_id: failure(18, "TypeError", message)}
    tests = {test_id: SuiteTest(test_id, "tests/test_shop.py", 13, True)}
    symptoms = find_symptoms(seen, tests, {"tests/test_shop.py": SUITE})
    text = write_statement(symptoms, (), [test_id])
    assert text.startswith("`total` fails with TypeError\n\nWhen I run this:\n")
    assert "TypeError: Helper is not a price" in text
    assert 'File "shop.py", in total\n' in text
    assert "test_" not in text


def archive(name: str) -> bytes:
    import io
    import tarfile

    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        info = tarfile.TarInfo(name)
        info.size = 2
        tar.addfile(info, io.BytesIO(b"x\n"))
        link = tarfile.TarInfo("p-1/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)
    return data.getvalue()


def test_a_distribution_is_unpacked_into_its_folder_only(tmp_path: Path) -> None:
    unpack(archive("p-1/m.py"), tmp_path / "good")
    assert [p.name for p in (tmp_path / "good" / "p-1").iterdir()] == ["m.py"]
    for name in ("../m.py", "/m.py", "p-1/../../m.py", "m.py"):
        with pytest.raises(TemplateError, match="has no place"):
            unpack(archive(name), tmp_path / "bad")
    with pytest.raises(TemplateError, match="cannot be unpacked"):
        unpack(b"no archive", tmp_path / "worse")
    assert not (tmp_path / "m.py").exists()


def test_a_copy_of_the_project_in_its_environment_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coding_gym.tasks.synthesis.inside.survey import _copies

    inside, installed = tmp_path / "tree" / "shop.py", tmp_path / "env" / "lib" / "shop.py"
    for path in (inside, installed):
        path.parent.mkdir(parents=True)
        path.write_text("PRICE = 3\n")
    monkeypatch.setattr("sys.prefix", str(tmp_path / "env"))
    monkeypatch.setattr("sys.path", [])
    assert _copies(f"{tmp_path}/tree/", {str(inside)}) == [str(installed)]
    installed.write_text("PRICE = 4\n")
    assert _copies(f"{tmp_path}/tree/", {str(inside)}) == []
