"""Rows that nobody could use are refused when they are loaded, not when a patch is graded."""

import dataclasses
import json
from pathlib import Path

import pytest
import rows

from coding_gym.tasks import load_tasks
from coding_gym.tasks.new_folder import write_new_task

GOOD = {
    "instance_id": "good",
    "problem_statement": "broken",
    "files": {"a.py": "x = 1\n"},
    "FAIL_TO_PASS": ["t.py::test_a"],
}
NO_UNICODE = "must be text of Unicode without NUL, got "
NO_TEXTS = "must be a list of texts of Unicode without NUL, got "
NO_DATE = "must be an ISO 8601 date of the years"
NO_IMAGE = "must be a path or the name of an image, got "


def refusal(tmp_path: Path, **change: object) -> str:
    path = tmp_path / "rows.jsonl"
    both = [GOOD, GOOD | {"instance_id": "bad"} | change]
    path.write_text("".join(json.dumps(row) + "\n" for row in both), "utf-8")
    found = rows.refusal(path)
    assert found.startswith(f"{path} line 2 (bad): ")
    assert len(found) < 600
    return found.removeprefix(f"{path} line 2 (bad): ")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("runner", "pytst", ": no test runner is called 'pytst'; did you mean"),
        ("FAIL_TO_PASS", ["t.py::test\0_a"], f" {NO_TEXTS}'t.py::test\\x00"),
        ("PASS_TO_PASS", ["t.py::\ud800"], f" {NO_TEXTS}'t.py::\\ud800'"),
        ("FAIL_TO_PASS", [], " names no test"),
        ("FAIL_TO_PASS", None, " names no test"),
        ("created_at", "zz", f" {NO_DATE}"),
        ("created_at", "1111-01-01", f" {NO_DATE}"),
        ("version", float("nan"), " must be text, got nan"),
        ("version", float("inf"), " must be text, got inf"),
        ("image", "\0x", f" {NO_UNICODE}'\\x00x'"),
        ("image", "x" * 5000, f" {NO_IMAGE}'xxx"),
        ("image", "~nobody-of-that-name/x", f" {NO_IMAGE}"),
        ("folder", "\0", f" {NO_UNICODE}'\\x00'"),
        ("folder", "x" * 5000, " must name a folder, got 'xxx"),
        ("folder", "~nobody-of-that-name", " must name a folder"),
        ("test_command", "a\0b", f" {NO_UNICODE}"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_with_line_field_and_value(
    tmp_path, field, value, said
):
    files = {"files": None} if field == "folder" else {}
    assert f"field '{field}'{said}" in refusal(tmp_path, **files, **{field: value})


@pytest.mark.parametrize(
    ("runner", "test", "said"),
    [
        ("pytest", "::test_a", "expected test '::test_a' names a file without a name"),
        ("pytest", "test_a", "is 'pytest', and expected test 'test_a' is not a pytest node id"),
        ("unittest", "test a", "is 'unittest', and expected test 'test a' names no module"),
    ],
)
def test_a_test_that_the_runner_does_not_know_is_refused(tmp_path, runner, test, said):
    assert said in refusal(tmp_path, runner=runner, FAIL_TO_PASS=[test])


def test_a_task_has_a_name_that_can_be_shown():
    for name in ("", " ", "a\nb", "x" * 256, "\0", 3):
        found = rows.refusal([GOOD | {"instance_id": name}])
        assert found.startswith("row 1: field 'instance_id' must be "), name


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
    found = rows.refusal([GOOD, odd], environments={"odd": {"runner": "junit"}})
    assert found.startswith("row 2 (odd): field 'runner' is 'junit', and ")


def test_tasks_that_were_made_by_hand_are_looked_at_too():
    found = rows.refusal([dataclasses.replace(rows.loaded(GOOD), runner="nope")])
    assert found.startswith("row 1 (good): field 'runner': no test runner")


def test_the_tests_of_a_folder_are_looked_at_too(tmp_path):
    write_new_task(tmp_path / "task")
    manifest = tmp_path / "task" / "task.toml"
    text = manifest.read_text("utf-8")
    assert "::test_half" in text
    manifest.write_text(text.replace("::test_half", "::test\\u0000half"), "utf-8")
    assert "must hold no NUL, got" in rows.refusal(manifest.parent)
