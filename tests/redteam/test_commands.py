"""Cheats by the files that a test command starts or reads: those are no part of a patch."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from commanded import COMMANDED, SCRIPTED

from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.task import FilesTree, Task
from coding_gym.tasks import load_tasks
from coding_gym.workspace import TemplateStore

BUGGY = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"
FILES = {
    "calc.py": BUGGY,
    "test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    "check.sh": "python checks/sums.py && cmp -s checks/wanted.txt out.txt\n",
    "checks/sums.py": (
        "from pathlib import Path\n\nfrom calc import add\n\n"
        'Path("out.txt").write_text(f"{add(1, 2)}\\n")\n'
    ),
    "checks/wanted.txt": "3\n",
    "Makefile": "include mk/rules.mk\n",
    "mk/rules.mk": "check:\n\tpython -m pytest -q test_calc.py\n",
    "package.json": '{"scripts": {"test": "python -m pytest -q test_calc.py"}}\n',
}
COMMANDS = (
    "python -m pytest -q test_calc.py",
    "PYTHONPATH=. bash ./check.sh checks/sums.py checks/wanted.txt",
    "make check",
)
ROW = {
    "instance_id": "local__calc-1",
    "repo": "local/calc",
    "base_commit": "0" * 39 + "1",
    "problem_statement": "add subtracts",
    "FAIL_TO_PASS": [],
    "PASS_TO_PASS": [],
    "files": FILES,
    "test_commands": list(COMMANDS),
}


@pytest.fixture(scope="module")
def task() -> Task:
    return load_tasks([ROW])[0]


def graded(task: Task, store: TemplateStore, changes: Mapping[str, str | None]) -> Grade:
    assert isinstance(task.tree, FilesTree)
    before = dict(task.tree.files)
    after = {path: text for path, text in (before | changes).items() if text is not None}
    return grade(task, store.get(task), Patch.between(before, after))


@pytest.mark.parametrize("files", COMMANDED.values(), ids=COMMANDED.keys())
def test_files_that_commands_need_help_no_wrong_repair(
    task: Task, store: TemplateStore, files: Mapping[str, str | None]
) -> None:
    verdict = graded(task, store, {"calc.py": f"{BUGGY}\n\nVERSION = 2\n", **files})
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert set(verdict.dropped_paths) == set(files)
    assert set(verdict.fail_to_pass.values()) == {"failed"}


def test_files_that_commands_need_are_no_patch_and_hurt_no_real_repair(
    task: Task, store: TemplateStore
) -> None:
    files: dict[str, str | None] = {}
    for more in COMMANDED.values():
        files |= more
    assert graded(task, store, files).reason is GradeReason.EMPTY_PATCH
    assert graded(task, store, {"calc.py": FIXED, **files}).resolved


TAP = Task(
    task_id="calc-tap",
    tree=FilesTree(
        {
            "calc.sh": "echo $(($1 - $2))\n",
            "run_tests.sh": (
                '[ "$(sh calc.sh 1 2)" = 3 ] || printf "not "\necho "ok 1 - adds"\necho 1..1\n'
            ),
        }
    ),
    problem_statement="add subtracts",
    gold_patch="",
    fail_to_pass=("adds",),
    created_at="2024-02-03T04:05:06Z",
    runner="tap",
    test_command="./run_tests.sh",
)


@pytest.mark.parametrize("command", ["bash run_tests.sh", "env A=1 timeout 60 sh ./run_tests.sh"])
@pytest.mark.parametrize("files", SCRIPTED.values(), ids=SCRIPTED.keys())
def test_the_program_of_a_test_command_is_the_graders(
    store: TemplateStore, command: str, files: Mapping[str, str | None]
) -> None:
    task = replace(TAP, test_command=command)
    verdict = graded(task, store, {"calc.sh": "echo $(($2 - $1))\n", **files})
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert dict(verdict.fail_to_pass) == {"adds": "failed"}
    assert verdict.dropped_paths == ("run_tests.sh",)


@pytest.mark.parametrize("command", ["./run_tests.sh", "scripts/../run_tests.sh"])
def test_a_missing_program_of_the_tree_is_the_policys_fault(
    store: TemplateStore, command: str
) -> None:
    """It is gone where the gold patch touches it, too, and is then no part of the graders'."""
    assert isinstance(TAP.tree, FilesTree)
    script = TAP.tree.files["run_tests.sh"]
    gold = Patch.between({"run_tests.sh": script}, {"run_tests.sh": f"{script}true\n"}).text
    task = replace(TAP, test_command=command, gold_patch=gold)
    verdict = graded(task, store, {"calc.sh": "echo 3\n", "run_tests.sh": None})
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert dict(verdict.fail_to_pass) == {"adds": "missing"}
