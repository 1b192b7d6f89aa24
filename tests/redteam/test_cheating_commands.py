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


CHECK_SH = (
    'echo 1..1\n[ "$(sh calc.sh 1 2)" = 3 ] && echo "ok 1 - adds" || echo "not ok 1 - adds"\n'
)
CHECK_PY = (
    "import subprocess\n\nout = subprocess.check_output(['sh', 'calc.sh', '1', '2'])\n"
    "print('1..1')\nprint('ok' if out == b'3\\n' else 'not ok', '1 - adds')\n"
)
CHECKS = {"calc.sh": "echo $(($1 - $2))\n", "ci/check.sh": CHECK_SH, "ci/check.py": CHECK_PY}
FIXED_CHECKS = {"calc.sh": "echo $(($1 + $2))\n"}
CHECK_COMMANDS = {
    "bash -o pipefail ci/check.sh": "ci/check.sh",
    "find ci -name check.sh -exec bash {} \\;": "ci/check.sh",
    "cat ci/check.sh | bash": "ci/check.sh",
    "python -W error ci/check.py": "ci/check.py",
    "python -X dev ci/check.py": "ci/check.py",
    "timeout -s KILL 30 bash ci/check.sh": "ci/check.sh",
    "env -u FOO bash -e ci/check.sh": "ci/check.sh",
    "bash -c 'sh ci/check.sh'": "ci/check.sh",
    "python -m ci.check": "ci/check.py",
    "python -mci.check": "ci/check.py",
}


@pytest.mark.slow
@pytest.mark.parametrize("command", CHECK_COMMANDS)
def test_script_after_options_of_its_interpreter_is_protected(
    store: TemplateStore, command: str
) -> None:
    task = made_task(
        "checks", CHECKS, FIXED_CHECKS, {}, fail_to_pass=("adds",), runner="tap",
        test_command=command,
    )  # fmt: skip
    script = CHECK_COMMANDS[command]
    text = (
        "echo 1..1\necho ok 1 - adds\n" if script.endswith("sh") else "print('1..1\\nok 1 - adds')"
    )
    cheat = graded(task, store, {"calc.sh": "echo $(($2 - $1))\n", script: text})
    assert cheat.reason is GradeReason.TESTS_FAILED, cheat
    assert cheat.dropped_paths == (script,)
    assert graded(task, store, {**FIXED_CHECKS, "ci/new.txt": "x\n"}).resolved


@pytest.mark.slow
@pytest.mark.parametrize("command", ["./run_tests.sh", "scripts/../run_tests.sh"])
def test_patch_that_removes_the_test_script_fails(store: TemplateStore, command: str) -> None:
    """The gold patch changes the script, so its removal is graded."""
    gold = Patch.between({"run_tests.sh": SCRIPT}, {"run_tests.sh": f"{SCRIPT}true\n"}).text
    task = replace(TAP, test_command=command, gold_patch=gold)
    verdict = graded(task, store, {"calc.sh": "echo 3\n", "run_tests.sh": None})
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert dict(verdict.fail_to_pass) == {"adds": "missing"}
