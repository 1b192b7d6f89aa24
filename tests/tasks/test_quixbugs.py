"""QuixBugs checkouts: what becomes of each program, and whether the tasks hold."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_tasks import needs_junit
from repositories import write_files
from rows import refusal

from coding_gym.task import FilesTree, Task
from coding_gym.tasks import load_tasks
from coding_gym.tasks.sources import quixbugs, quixbugs_outcomes
from coding_gym.tasks.validation import validate_task
from coding_gym.tasks.validation_report import Checks
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

# A miniature of a checkout: a program in Python that hangs, one on graphs, one in Java.
PYTHON = {"halve": "F.F.s", "reach": "F."}
JAVA = {"halve": "F."}

_HALVE = '''
def halve(numbers):
    result = []
    while numbers:
        result.append(numbers[0] // 2){end}
    return result
{more}
"""
Halve
halve



Input:
    numbers: A list of ints

Output:
    Their halves, rounded down
"""
'''
_CORRECT = (
    "\n\n"
    "def halve(numbers):\n"
    "    result = []\n"
    "    while numbers:\n"
    "        result.append(numbers[0] // 2)\n"
    "        numbers = numbers[1:]\n"
    "    return result\n"
    '"""\n'
    "def halve(numbers):\n"
    "    return [number // 2 for number in numbers]\n"
    '"""\n'
)
_PARAMETRISED = """\
import pytest
from load_testdata import load_json_testcases

if pytest.use_correct:
    from correct_python_programs.halve import halve
else:
    from python_programs.halve import halve

testdata = load_json_testcases(halve.__name__)


@pytest.mark.parametrize("input_data,expected", testdata)
def test_halve(input_data, expected):
    if input_data == ["slow"]:
        pytest.skip("too slow")
    found = halve(*input_data)
    assert (found[0] if found and not isinstance(expected, list) else found or None) == expected
"""
_CASES = [[[[8, 6]], [4, 3]], [[[]], None], [[[7]], 3], [[""], None], [["slow"], "a\nb"]]
_LOAD = """\
import json
from pathlib import Path


def load_json_testcases(name):
    path = Path(__file__).parent / f"../json_testcases/{name}.json"
    return [json.loads(line) for line in path.read_text().splitlines()]
"""
_REACH = 'def reach(node):\n    return {expression}\n\n\n"""\nReach\n\nOutput:\n    The end\n"""\n'
_REACH_TESTS = '''\
import pytest
from node import Node

if pytest.use_correct:
    from correct_python_programs.reach import reach
else:
    from python_programs.reach import reach


def test1():
    """Case 1: Two nodes
    Output: the second
    """
    second = Node(2)
    assert reach(Node(1, second)) == second


def test2():
    """Case 2: One node"""
    assert reach(None) is None
'''
_NODE = (
    "class Node:\n    def __init__(self, value, successor=None):\n"
    "        self.value, self.successor = value, successor\n"
)
_JAVA = """\
package {package};
{header}
public class HALVE {{
    public static int halve(int number) {{
        Node node = new Node(number);
        return node.value / {by};{hint}
    }}
}}
"""
_JAVA_NODE = (
    "package java_programs;\n\npublic class Node {\n    public final int value;\n\n"
    "    public Node(int value) {\n        this.value = value;\n    }\n}\n"
)
_JAVA_TESTS = """\
package java_testcases.junit;

public class HALVE_TEST {
    // @org.junit.Test public void test_none() { }
    @org.junit.Test(timeout = 3000)
    public void test_0() throws java.lang.Exception {
        int result = java_programs.HALVE.halve((int)8);
        org.junit.Assert.assertEquals( (int) 4, result);
    }

    @org.junit.Test(timeout = 3000)
    public void test_1() throws java.lang.Exception {
        int result = java_programs.HALVE.halve((int)0);
        org.junit.Assert.assertEquals( (int) 0, result);
    }
}
"""


def write_checkout(folder: Path) -> Path:
    """Writes the checkout; returns its folder."""
    files = {
        "python_programs/halve.py": _HALVE.format(end="", more="\n"),
        "correct_python_programs/halve.py": _CORRECT,
        "python_testcases/test_halve.py": _PARAMETRISED,
        "python_testcases/load_testdata.py": _LOAD,
        "python_testcases/node.py": _NODE,
        "json_testcases/halve.json": "\n".join(map(json.dumps, _CASES)) + "\n",
        "python_programs/reach.py": _REACH.format(expression="node"),
        "correct_python_programs/reach.py": _REACH.format(expression="node and node.successor"),
        "python_testcases/test_reach.py": _REACH_TESTS,
        "java_programs/HALVE.java": _JAVA.format(
            package="java_programs", header="", by=3, hint=" // 2 in correct version"
        ),
        "java_programs/Node.java": _JAVA_NODE,
        "correct_java_programs/HALVE.java": _JAVA.format(
            package="correct_java_programs",
            header="\nimport java_programs.Node;\n/*\n * Written by hand.\n */",
            by=2,
            hint="",
        ),
        "java_testcases/junit/HALVE_TEST.java": _JAVA_TESTS,
    }
    return write_files(folder, files)


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


@needs_junit
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
def test_files_of_another_form_are_named(checkout: Path, name: str, text: str, said: str) -> None:
    (checkout / name).write_text(text)
    found = refusal(checkout)
    assert said in found
    assert Path(name).name in found
