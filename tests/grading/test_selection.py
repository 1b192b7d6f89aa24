from dataclasses import replace

import pytest
from cart_task import BASE, HIDDEN, TASK

from coding_gym.errors import PatchError
from coding_gym.grading.pytest_config import collection_patterns
from coding_gym.grading.runners import get_runner
from coding_gym.grading.selection import Selection, select
from coding_gym.patch import FileChange, Patch
from coding_gym.task import Task


def divided(task: Task, patch: Patch, patterns: tuple[str, ...] = ("test_*.py",)) -> Selection:
    runner = get_runner("pytest")
    return select(
        task,
        patch,
        test_files=runner.files(task),
        patterns=patterns,
        config_names=runner.config_names,
    )


def dropped(
    *paths: str, task: Task = TASK, patterns: tuple[str, ...] = ("test_*.py",)
) -> list[str]:
    patch = Patch.between({}, dict.fromkeys(paths, "x = 1\n"))
    return list(divided(task, patch, patterns).dropped_paths)


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_discounts.py",
        "tests/test_new.py",
        "tests/deep/data.json",
        "test_anywhere.py",
        "lib/test_anywhere.py",
        "conftest.py",
        "lib/conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        "tox.ini",
        "setup.cfg",
        "pyproject.toml",
        ".coveragerc",
        "sitecustomize.py",
        "lib/usercustomize/__init__.py",
        "cheat.pth",
        "cheat.egg-info/entry_points.txt",
        "cheat-1.0.dist-info/METADATA",
        "cheat-1.0.DIST-INFO/entry_points.txt",
        "__pycache__/cart.cpython-311.pyc",
        "./conftest.py",
    ],
)
def test_files_of_the_graders_are_left_out(path: str) -> None:
    assert dropped("cart.py", path) == [path]


@pytest.mark.parametrize(
    "path",
    ["cart.py", "contest.py", "lib/testing/cart.py", "latest.py", "docs/tests.md", "setup.py"],
)
def test_files_of_the_policy_are_graded(path: str) -> None:
    assert dropped(path) == []


def test_what_is_graded_is_the_rest_of_the_patch_word_for_word() -> None:
    source = Patch.between({"cart.py": "x = 1\n"}, {"cart.py": "x = 2\n"})
    tests = Patch.between({}, {"tests/test_new.py": "y = 1\n"})
    assert divided(TASK, Patch(tests.text + source.text)).patch == source


def test_files_that_the_gold_patch_touches_are_graded() -> None:
    gold = Patch.between({}, {"setup.cfg": "", "tests/conftest.py": "x = 1\n"}).text
    task = replace(TASK, gold_patch=gold)
    assert dropped("setup.cfg", "tests/conftest.py", "pytest.ini", task=task) == ["pytest.ini"]


def test_a_rename_into_or_out_of_the_tests_is_left_out() -> None:
    text = (
        "diff --git a/tests/pricing.py b/pricing.py\n"
        "similarity index 100%\n"
        "rename from tests/pricing.py\n"
        "rename to pricing.py\n"
    )
    selection = divided(TASK, Patch(text))
    assert selection.patch.is_empty
    assert selection.dropped_paths == ("pricing.py", "tests/pricing.py")


def test_tests_at_the_top_of_the_tree_do_not_make_all_of_it_tests() -> None:
    task = replace(TASK, test_patch="", fail_to_pass=("test_x.py::test_a",), pass_to_pass=())
    assert dropped("cart.py", "tests/helper.py", "test_x.py", task=task) == ["test_x.py"]


def test_every_file_of_the_test_patch_is_left_out_whatever_its_name() -> None:
    files = HIDDEN | {"data/prices.csv": "1\n"}
    task = replace(TASK, test_patch=Patch.between(BASE, BASE | files).text)
    assert dropped("data/prices.csv", task=task) == ["data/prices.csv"]


def test_text_that_is_no_patch_is_refused() -> None:
    with pytest.raises(PatchError):
        divided(TASK, Patch("hello"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest]\npython_files = check_tests_*.py *.py\n"),
        ("tox.ini", "[pytest]\npython_files =\n    check_tests_*.py\n"),
        ("setup.cfg", "[tool:pytest]\npython_files = check_tests_*.py\n"),
        ("pyproject.toml", '[tool.pytest.ini_options]\npython_files = ["check_tests_*.py"]\n'),
        ("pyproject.toml", '[tool.pytest]\npython_files = "check_tests_*.py"\n'),
        ("pytest.toml", '[pytest]\npython_files = ["check_tests_*.py"]\n'),
    ],
)
def test_patterns_come_from_the_runners_configuration(name: str, text: str) -> None:
    patterns = collection_patterns({name: text})
    assert patterns == ("test_*.py", "*_test.py", "check_tests_*.py")
    assert dropped("lib/check_tests_x.py", "lib/a.py", patterns=patterns) == [
        "lib/check_tests_x.py"
    ]


@pytest.mark.parametrize("text", ["[pytest", "python_files = x\n", "[tool:pytest]\nx = 1\n", ""])
def test_configuration_that_cannot_be_read_leaves_the_default_patterns(text: str) -> None:
    assert collection_patterns({"setup.cfg": text, "pyproject.toml": text}) == (
        "test_*.py",
        "*_test.py",
    )


def test_no_change_is_compared_with_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy can make a hundred thousand files; grading is not to take hours for it."""

    def refuse(*_: object) -> bool:
        raise AssertionError("two changes were compared")

    monkeypatch.setattr(FileChange, "__eq__", refuse)
    assert dropped("a.py", "test_a.py", "b.py", "test_b.py") == ["test_a.py", "test_b.py"]
