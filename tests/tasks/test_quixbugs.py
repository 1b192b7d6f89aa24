"""QuixBugs checkouts: what becomes of each program, and whether the tasks hold."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from quixbugs_checkout import JAVA, PYTHON, write_checkout
from rows import refusal

from coding_gym.task import FilesTree, Task
from coding_gym.tasks import load_tasks
from coding_gym.tasks.sources import quixbugs, quixbugs_outcomes
from coding_gym.tasks.validation import validate_task
from coding_gym.tasks.validation_report import Checks
from coding_gym.workspace import TemplateStore


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(quixbugs, "PYTHON", PYTHON)
    monkeypatch.setattr(quixbugs, "JAVA", JAVA)
    return write_checkout(tmp_path / "QuixBugs")


def changed(task: Task) -> list[str]:
    return [line for line in task.gold_patch.splitlines()[3:] if line[0] in "+-"]


def test_each_program_is_a_task_in_each_language(checkout: Path) -> None:
    tasks = load_tasks(checkout)
    assert [task.task_id for task in tasks] == [
        "quixbugs-python-halve",
        "quixbugs-python-reach",
        "quixbugs-java-halve",
    ]
    assert load_tasks(f"quixbugs:{checkout}", languages="java") == tasks[2:]
    assert {task.repo for task in tasks} == {"jkoppel/QuixBugs"}


def test_the_gold_patch_changes_what_is_wrong_and_nothing_else(checkout: Path) -> None:
    halve, reach, java = load_tasks(checkout)
    assert changed(halve) == ["+        numbers = numbers[1:]"]
    assert changed(reach) == ["-    return node", "+    return node and node.successor"]
    assert changed(java) == ["-        return node.value / 3;", "+        return node.value / 2;"]


def test_the_tree_holds_the_wrong_program_alone_and_no_hint(checkout: Path) -> None:
    halve, _, java = load_tasks(checkout)
    assert isinstance(halve.tree, FilesTree)
    assert isinstance(java.tree, FilesTree)
    assert sorted(halve.tree.files) == ["python_programs/halve.py"]
    assert sorted(java.tree.files) == ["java_programs/HALVE.java", "java_programs/Node.java"]
    assert "correct" not in "".join(java.tree.files.values())


def test_tests_have_the_names_that_pytest_and_junit_give_them(checkout: Path) -> None:
    halve, reach, java = load_tasks(checkout)
    name = "python_testcases/test_halve.py::test_halve"
    assert halve.fail_to_pass == (f"{name}[input_data0-expected0]", f"{name}[input_data2-3]")
    assert halve.pass_to_pass == (f"{name}[input_data1-None]", f"{name}[input_data3-None]")
    assert halve.excluded_tests == (f"{name}[input_data4-a\\nb]",)
    assert reach.fail_to_pass == ("python_testcases/test_reach.py::test1",)
    assert java.fail_to_pass == ("java_testcases.junit.HALVE_TEST::test_0",)
    assert java.pass_to_pass == ("java_testcases.junit.HALVE_TEST::test_1",)


def test_issues_say_what_a_program_is_for_and_when_it_goes_wrong(checkout: Path) -> None:
    halve, reach, java = load_tasks(checkout)
    assert "    Input:\n        numbers: A list of ints\n\n    Output:" in halve.problem_statement
    assert "`halve([8, 6])` should give:\n\n    [4, 3]" in halve.problem_statement
    assert "    Two nodes\n    Output: the second" in reach.problem_statement
    assert "`HALVE.halve((int)8)` should give:\n\n    (int) 4" in java.problem_statement


def test_python_programs_validate_even_if_they_hang(checkout: Path, store: TemplateStore) -> None:
    for task in load_tasks(checkout, languages="python"):
        hidden = task.test_patch.replace("_s = 2.0", "_s = 0.6").replace("_s = 0.5", "_s = 0.3")
        sooner = replace(task, test_patch=hidden)
        report = validate_task(sooner, store, Checks(repeats=1, looks_for_leaks=False))
        assert report.ok, report


@pytest.mark.skipif(
    not (shutil.which("javac") and Path("/usr/share/java/junit4.jar").exists()),
    reason="needs a JDK and JUnit 4 (apt-get install default-jdk-headless junit4)",
)
def test_java_programs_validate(checkout: Path, store: TemplateStore) -> None:
    (task,) = load_tasks(checkout, languages="java")
    report = validate_task(task, store, Checks(repeats=1, looks_for_leaks=False))
    assert report.ok, report


def test_every_known_program_has_a_test_that_its_bug_breaks() -> None:
    for outcomes in (quixbugs_outcomes.PYTHON, quixbugs_outcomes.JAVA):
        assert len(outcomes) == 40
        assert all("F" in marks and set(marks) <= set("F.s") for marks in outcomes.values())


def test_a_checkout_with_other_tests_is_refused(checkout: Path) -> None:
    path = checkout / "json_testcases" / "halve.json"
    path.write_text(path.read_text() + "[[[1]], 0]\n")
    assert "test_halve.py: has 6 tests where " in refusal(checkout)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("json_testcases/halve.json", "[1, 2]\n{]\n", "not a JSON value per line"),
        ("json_testcases/halve.json", "[1, 2]\n7\n", "line 2: must be a list of arguments"),
        ("python_programs/reach.py", "def reach(:\n", "not Python"),
        ("python_testcases/test_reach.py", "def test(:\n", "not Python"),
    ],
)
def test_files_that_are_not_what_they_must_be_are_named(
    checkout: Path, name: str, text: str, said: str
) -> None:
    (checkout / name).write_text(text)
    found = refusal(checkout)
    assert said in found
    assert Path(name).name in found
