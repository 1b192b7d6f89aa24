"""Cheats that change files which a test command starts or reads; grading drops these files."""

from dataclasses import replace

import pytest
from cheats import cheat_params
from command_files import BUGGY, COMMANDED, FIXED, ROW
from grading_fixtures import graded, made_task

from coding_gym.grade import GradeReason
from coding_gym.patch import Patch
from coding_gym.tasks import load_tasks
from coding_gym.workspace import TemplateStore

(COMMAND_TASK,) = load_tasks([ROW])


@pytest.mark.parametrize("name", cheat_params(COMMANDED))
def test_changed_command_files_do_not_resolve_a_wrong_repair(
    store: TemplateStore, name: str
) -> None:
    changes = {"calc.py": f"{BUGGY}\n\nVERSION = 2\n", **COMMANDED[name]}
    verdict = graded(COMMAND_TASK, store, changes)
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert set(verdict.dropped_paths) == set(COMMANDED[name])
    assert set(verdict.fail_to_pass.values()) == {"failed"}


@pytest.mark.slow
def test_changed_command_files_do_not_fail_a_real_repair(store: TemplateStore) -> None:
    files: dict[str, str | None] = {}
    for changes in COMMANDED.values():
        files |= changes
    assert graded(COMMAND_TASK, store, files).reason is GradeReason.EMPTY_PATCH
    assert graded(COMMAND_TASK, store, {"calc.py": FIXED, **files}).resolved


SCRIPT = '[ "$(sh calc.sh 1 2)" = 3 ] || printf "not "\necho "ok 1 - adds"\necho 1..1\n'
TAP = made_task(
    "calc-tap",
    {"calc.sh": "echo $(($1 - $2))\n", "run_tests.sh": SCRIPT},
    {},
    {},
    fail_to_pass=("adds",),
    runner="tap",
    test_command="./run_tests.sh",
)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["bash run_tests.sh", "env A=1 timeout 60 sh ./run_tests.sh"])
@pytest.mark.parametrize("script", ["echo 'ok 1 - adds'; echo 1..1\n", None])
def test_changes_of_the_program_of_a_test_command_are_dropped(
    store: TemplateStore, command: str, script: str | None
) -> None:
    task = replace(TAP, test_command=command)
    changes = {"calc.sh": "echo $(($2 - $1))\n", "run_tests.sh": script}
    verdict = graded(task, store, changes)
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert dict(verdict.fail_to_pass) == {"adds": "failed"}
    assert verdict.dropped_paths == ("run_tests.sh",)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["./run_tests.sh", "scripts/../run_tests.sh"])
def test_patch_that_removes_the_test_script_fails(store: TemplateStore, command: str) -> None:
    """The gold patch changes the script, so its removal is graded."""
    gold = Patch.between({"run_tests.sh": SCRIPT}, {"run_tests.sh": f"{SCRIPT}true\n"}).text
    task = replace(TAP, test_command=command, gold_patch=gold)
    verdict = graded(task, store, {"calc.sh": "echo 3\n", "run_tests.sh": None})
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert dict(verdict.fail_to_pass) == {"adds": "missing"}
