"""Environments that lie beside the rows."""

import json

import pytest

from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.patch import Patch
from coding_gym.tasks import load_tasks

TEST_PATCH = Patch.between(
    {"tests/test_a.py": "old\n"}, {"tests/test_a.py": "new\n", "tests/test_b.py": "b\n"}
).text
ROW = {
    "instance_id": "owner__name-1",
    "repo": "owner/name",
    "base_commit": "0" * 40,
    "problem_statement": "broken",
    "test_patch": TEST_PATCH,
    "FAIL_TO_PASS": ["t.py::test_a", "t.py::test_b"],
    "PASS_TO_PASS": ["t.py::test_c", "t.py::test_d"],
}
OTHER = ROW | {"instance_id": "owner__name-2", "interpreter": "3.10"}


def test_a_file_of_recorded_environments_is_laid_over_its_rows(tmp_path):
    entry = {
        "instance_id": "owner__name-1",
        "base_commit": "1" * 40,
        "python": "3.9",
        "install_cmds": ["python -m pip install -e ."],
        "test_cmd": "python -m pytest tests/test_a.py",
        "p2p_bad": ["t.py::test_c"],
        "t_install": 4.6,
    }
    path = tmp_path / "environments.jsonl"
    path.write_text(json.dumps(entry) + "\n")
    first, second = load_tasks([ROW, OTHER], environments=path)
    assert (first.interpreter, first.install_commands) == ("3.9", ("python -m pip install -e .",))
    assert (first.base_commit, first.environment_setup_commit) == ("0" * 40, "1" * 40)
    assert first.visible_test_command == "python -m pytest tests/test_a.py"
    assert first.fail_to_pass == ("t.py::test_a", "t.py::test_b")
    assert first.pass_to_pass == ("t.py::test_d",)
    assert first.excluded_tests == ("t.py::test_c",)
    assert second == load_tasks([OTHER])[0]


def test_a_mapping_takes_the_names_of_tasks_too():
    entry = {
        "interpreter": "3.12",
        "install_commands": [],
        "visible_test_command": "make check",
        "excluded_tests": ["t.py::test_a"],
        "grading_timeout_s": 300,
    }
    (task,) = load_tasks([ROW], environments={"owner__name-1": entry})
    assert (task.interpreter, task.install_commands) == ("3.12", ())
    assert task.visible_test_command == "make check"
    assert task.fail_to_pass == ("t.py::test_b",)
    assert task.excluded_tests == ("t.py::test_a",)
    assert task.grading_timeout_s == 300


def test_an_empty_entry_changes_nothing():
    assert load_tasks([OTHER], environments={"owner__name-2": {}}) == load_tasks([OTHER])


def test_commands_that_only_list_packages_are_left_out():
    commands = ["pip install a", "python -m pip list --format=freeze > ../f", "pip freeze; make"]
    entry = {"install_commands": commands}
    (task,) = load_tasks([ROW], environments={"owner__name-1": entry})
    assert task.install_commands == ("pip install a", "pip freeze; make")


@pytest.mark.parametrize(
    ("command", "visible"),
    [
        ("pytest tests/test_b.py tests/test_a.py", "pytest tests/test_a.py"),
        ("pytest tests/test_b.py", "python -m pytest -q"),  # nothing of it is there at base
        ("pytest tests", "pytest tests"),
        ("pytest 'tests/test_b.py", "pytest 'tests/test_b.py"),
    ],
)
def test_files_that_only_hidden_tests_bring_leave_the_visible_command(command, visible):
    (task,) = load_tasks([ROW], environments={"owner__name-1": {"test_cmd": command}})
    assert task.visible_test_command == visible


def test_leaving_out_every_test_to_mend_is_refused():
    bad = {"excluded_tests": ROW["FAIL_TO_PASS"]}
    with pytest.raises(InvalidTaskError, match="leaves none of the 2 tests in FAIL_TO_PASS"):
        load_tasks([ROW], environments={"owner__name-1": bad})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"instance_id": "x", "python": 3.9}, "field 'python' should be a valid string, got 3.9"),
        (
            {"instance_id": "x", "install_cmds": "a"},
            "field 'install_cmds' must be a list of shell commands",
        ),
        (
            {"instance_id": "x", "grading_timeout_s": 0},
            "field 'grading_timeout_s' should be greater than 0, got 0",
        ),
        ({"python": "3.9"}, "field 'instance_id' must be text, got None"),
        (["x"], "must be an object, got ['x']"),
    ],
)
def test_a_wrong_line_is_refused_with_file_field_and_value(tmp_path, line, message):
    path = tmp_path / "environments.jsonl"
    path.write_text("\n" + json.dumps(line) + "\n")
    with pytest.raises(InvalidTaskError) as refused:
        load_tasks([ROW], environments=path)
    assert str(refused.value).startswith(f"{path} line 2: {message}")


def test_a_file_that_is_not_there_is_a_wrong_argument(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"environments must be a \.jsonl file or a map"):
        load_tasks([ROW], environments=tmp_path / "gone.jsonl")


def test_a_misspelt_key_is_refused_and_foreign_ones_are_ignored():
    with pytest.raises(InvalidTaskError, match="'install_command' is not known; did you mean"):
        load_tasks([ROW], environments={"owner__name-1": {"install_command": ["make"]}})
    load_tasks([ROW], environments={"owner__name-1": {"t_install": 3.0, "status": "ok"}})


def test_environments_for_none_of_the_tasks_are_refused():
    with pytest.raises(InvalidTaskError, match=r"no entry for any of the 1 tasks.*'owner__name-9'"):
        load_tasks([ROW], environments={"owner__name-9": {}})
