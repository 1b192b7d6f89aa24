"""Rows that nobody could use are refused when they are loaded, not when a patch is graded."""

import dataclasses
import json
from pathlib import Path

import pytest

from coding_gym.errors import InvalidTaskError
from coding_gym.tasks import load_tasks
from coding_gym.tasks.new_folder import write_new_task

GOOD = {
    "instance_id": "good",
    "problem_statement": "broken",
    "files": {"a.py": "x = 1\n"},
    "FAIL_TO_PASS": ["t.py::test_a"],
}


def refusal(tmp_path: Path, **change: object) -> str:
    path = tmp_path / "rows.jsonl"
    rows = [GOOD, GOOD | {"instance_id": "bad"} | change]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with pytest.raises(InvalidTaskError) as refused:
        load_tasks(path)
    said = str(refused.value)
    assert said.startswith(f"{path} line 2 (bad): ")
    assert "\n" not in said
    assert len(said) < 600
    return said.removeprefix(f"{path} line 2 (bad): ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"runner": "pytst"}, "field 'runner': no test runner is called 'pytst'; did you mean"),
        (
            {"FAIL_TO_PASS": ["t.py::test\0_a"]},
            "'FAIL_TO_PASS' must be a list of texts of Unicode without NUL, got 't.py::test\\x00",
        ),
        (
            {"PASS_TO_PASS": ["t.py::\ud800"]},
            "'PASS_TO_PASS' must be a list of texts of Unicode without NUL, got 't.py::\\ud800'",
        ),
        ({"FAIL_TO_PASS": ["::test_a"]}, "expected test '::test_a' names a file without a name"),
        (
            {"FAIL_TO_PASS": ["test_a"]},
            "field 'runner' is 'pytest', and expected test 'test_a' is not a pytest node id",
        ),
        (
            {"runner": "unittest", "FAIL_TO_PASS": ["test a"]},
            "field 'runner' is 'unittest', and expected test 'test a' names no module",
        ),
        ({"FAIL_TO_PASS": []}, "field 'FAIL_TO_PASS' names no test"),
        ({"FAIL_TO_PASS": None}, "field 'FAIL_TO_PASS' names no test"),
        ({"created_at": "zz"}, "field 'created_at' must be an ISO 8601 date of the years"),
        ({"created_at": "1111-01-01"}, "field 'created_at' must be an ISO 8601 date of the years"),
        ({"version": float("nan")}, "field 'version' must be text, got nan"),
        ({"version": float("inf")}, "field 'version' must be text, got inf"),
        ({"image": "\0x"}, "field 'image' must be text of Unicode without NUL, got '\\x00x'"),
        ({"image": "x" * 5000}, "field 'image' must be a path or the name of an image, got 'xxx"),
        ({"image": "~nobody-of-that-name/x"}, "field 'image' must be a path or the name of an im"),
        (
            {"files": None, "folder": "\0"},
            "field 'folder' must be text of Unicode without NUL, got '\\x00'",
        ),
        ({"files": None, "folder": "x" * 5000}, "field 'folder' must name a folder, got 'xxx"),
        ({"files": None, "folder": "~nobody-of-that-name"}, "field 'folder' must name a folder"),
        ({"test_command": "a\0b"}, "field 'test_command' must be text of Unicode without NUL"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_with_line_field_and_value(tmp_path, change, message):
    assert message in refusal(tmp_path, **change)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 256, "\0", 3])
def test_a_task_has_a_name_that_can_be_shown(name):
    with pytest.raises(InvalidTaskError) as refused:
        load_tasks([GOOD | {"instance_id": name}])
    assert str(refused.value).startswith("row 1: field 'instance_id' must be ")
    assert "\n" not in str(refused.value)


def test_a_long_value_is_shown_in_part(tmp_path):
    assert "x" * 100 not in refusal(tmp_path, image="x" * 5000)
    for field in ("runner", "created_at", "image_path"):
        assert "x" * 500 not in refusal(tmp_path, **{field: "x" * 5000})
    assert "x" * 500 not in refusal(tmp_path, FAIL_TO_PASS=["x" * 5000])


def test_issues_and_patches_may_hold_any_character():
    patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\0\n+b\n"
    (task,) = load_tasks([GOOD | {"problem_statement": "a\0b", "patch": patch}])
    assert (task.problem_statement, task.gold_patch) == ("a\0b", patch)


def test_a_task_without_a_test_to_mend_has_one_to_keep():
    (task,) = load_tasks([GOOD | {"FAIL_TO_PASS": [], "PASS_TO_PASS": ["t.py::test_b"]}])
    assert task.expected_tests == ("t.py::test_b",)


def test_what_the_environments_or_the_filters_mend_is_not_refused():
    odd = GOOD | {"instance_id": "odd", "FAIL_TO_PASS": ["case", "other"]}
    entry = {"runner": "command", "excluded_tests": ["other"]}
    tasks = load_tasks([GOOD, odd], environments={"odd": entry})
    assert [task.runner for task in tasks] == ["pytest", "command"]
    assert len(load_tasks([GOOD, odd], task_ids="good")) == 1
    with pytest.raises(InvalidTaskError, match=r"row 2 \(odd\): field 'runner' is 'junit', and "):
        load_tasks([GOOD, odd], environments={"odd": {"runner": "junit"}})


def test_tasks_that_were_made_by_hand_are_looked_at_too():
    (task,) = load_tasks([GOOD])
    with pytest.raises(InvalidTaskError, match=r"row 1 \(good\): field 'runner': no test runner"):
        load_tasks([dataclasses.replace(task, runner="nope")])


def test_the_tests_of_a_folder_are_looked_at_too(tmp_path):
    write_new_task(tmp_path / "task")
    manifest = tmp_path / "task" / "task.toml"
    text = manifest.read_text("utf-8")
    assert "::test_half" in text
    manifest.write_text(text.replace("::test_half", "::test\\u0000half"), "utf-8")
    with pytest.raises(InvalidTaskError, match=r"'fail_to_pass' item \d must hold no NUL, got"):
        load_tasks(manifest.parent)
