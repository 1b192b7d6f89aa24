"""Choosing tasks: sources by name, filters, and rows that nobody could use."""

import dataclasses
import json
from pathlib import Path

import pytest
import rows
from rows import refusal

from coding_gym.errors import InvalidArgumentError, UnknownTaskError
from coding_gym.tasks import find_task, load_tasks
from coding_gym.tasks.new_folder import write_new_task


def row(task_id: str, **more: str) -> dict[str, object]:
    base = {"instance_id": task_id, "problem_statement": "broken", "files": {"a.py": ""}}
    return base | {"FAIL_TO_PASS": ["t.py::test_a"]} | more


ROWS = [
    row("c", repo="o/x", split="train", difficulty="easy"),
    row("a", repo="o/y", split="test", difficulty="hard"),
    row("b", repo="o/x", split="test", difficulty="hard", language="java"),
    row("calc-add-sign", repo="o/z", split="train", difficulty="easy"),
]


def ids(**filters: object) -> list[str]:
    return [task.task_id for task in load_tasks(ROWS, **filters)]


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({}, ["c", "a", "b", "calc-add-sign"]),
        ({"task_ids": ["b", "c"]}, ["c", "b"]),
        ({"task_ids": "b"}, ["b"]),
        ({"repos": ["o/x"]}, ["c", "b"]),
        ({"languages": ["java"]}, ["b"]),
        ({"difficulty": "hard"}, ["a", "b"]),
        ({"split": "train"}, ["c", "calc-add-sign"]),
        ({"split": ["train", "test"], "limit": 3}, ["c", "a", "b"]),
        ({"split": "test", "repos": "o/x", "limit": 9}, ["b"]),
    ],
)
def test_filters_are_exact_and_keep_the_order(filters, left):
    assert ids(**filters) == left


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"split": "tset"}, "split=['tset'] leaves none of 4 tasks; their values are ['test', "),
        ({"repos": ["o"]}, "repos=['o'] leaves none of 4 tasks; their values are ['o/x', "),
        (
            {"split": "train", "languages": "java"},
            "split=['train'] leaves none of 1 tasks; their values are ['test']",
        ),
        ({"difficulty": []}, "difficulty=[] leaves none of 4 tasks"),
        (
            {"task_ids": ["calc-add-sing"]},
            "no task 'calc-add-sing' among the 4 of this source; did you mean 'calc-add-sign'? "
            "`coding-gym tasks list` shows all",
        ),
        ({"task_ids": ["?"]}, "no task '?' among the 4 of this source; `coding-gym tasks list`"),
    ],
)
def test_a_filter_that_leaves_nothing_is_named(filters, message):
    with pytest.raises(UnknownTaskError) as refused:
        ids(**filters)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        *(({"limit": limit}, f"at least 1, got {limit}") for limit in (0, -1, True, 1.5)),
        *(({"repos": repos}, "repos must be text or a list of texts") for repos in (3, [3])),
        ({"task_ids": []}, "task_ids is empty; give at least one id, or N"),
    ],
)
def test_a_filter_that_cannot_be_is_refused(filters, said):
    with pytest.raises(InvalidArgumentError, match=said):
        ids(**filters)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("bundeld", "no task source 'bundeld'; did you mean 'bundled'"),
        (
            "nofile.jsonl",
            "there is no file 'nofile.jsonl'; give 'bundled', 'polyglot', a folder of tasks",
        ),
        ("swe-smith:nofile.jsonl", "there is no file 'nofile.jsonl'; give 'bundled', "),
        (Path("/nonexistent"), "there is no file or folder '/nonexistent'; give 'bundled', "),
        ("./no/such/folder", "there is no file or folder './no/such/folder'; give 'bundled', "),
    ],
)
def test_a_source_that_is_not_there_is_called_missing(source, said):
    with pytest.raises(UnknownTaskError) as refused:
        load_tasks(source)
    assert str(refused.value).startswith(said)


def test_a_test_that_must_fail_and_pass_at_the_base_is_refused_where_it_stands():
    both = row("d", PASS_TO_PASS=["t.py::test_b", "t.py::test_a"])
    found = refusal([ROWS[0], both])
    assert found.startswith("row 2 (d): fields ")
    assert "both name 't.py::test_a'; name it in one" in found
    assert load_tasks([ROWS[0], both], task_ids="c")
    said = {"d": {"excluded_tests": ["t.py::test_a"]}}
    assert "leaves none of the 1 tests" in refusal([both], environments=said)


@pytest.mark.parametrize(
    ("environments", "said"),
    [
        ("swebnch", "did you mean 'swebench'?"),
        ("image", "did you mean 'images'?"),
        ("gone.jsonl", "or give 'swebench' or 'images'"),
    ],
)
def test_environments_that_are_not_there_are_called_missing(environments, said):
    with pytest.raises(InvalidArgumentError) as refused:
        load_tasks(ROWS, environments=environments)
    assert str(refused.value).endswith(f"there is no file {environments!r}; {said}")


@pytest.mark.parametrize("source", [3, None, ROWS[0]])
def test_a_source_of_another_type_is_refused(source):
    with pytest.raises(InvalidArgumentError, match="a source's name, a path or a list of rows"):
        load_tasks(source)


def test_tasks_that_were_loaded_are_found_and_a_source_too():
    tasks = load_tasks(ROWS)
    assert find_task(tasks, "b") is tasks[2]
    loaded = load_tasks("bundled", limit=2)
    assert load_tasks(list(loaded)) == loaded


GOOD = row("good")
NO_UNICODE = "must be text of Unicode without NUL, got "
NO_TEXTS = "must be a list of texts of Unicode without NUL, got "
NO_DATE = "must be an ISO 8601 date of the years"
NO_IMAGE = "must be a path or the name of an image, got "


def refused_row(tmp_path: Path, **change: object) -> str:
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
        ("base_commit", None, " is missing, and the tree is a git repository"),
        ("repository", "gone", " must be a git repository or a URL, got"),
        ("patch", "nonsense", ": not a unified diff: no file header in 'nonsense'"),
        ("test_patch", "nonsense", ": not a unified diff"),
    ],
)
def test_an_unusable_row_is_refused_with_line_field_and_value(tmp_path, field, value, said):
    files = {"folder": {"files": None}, "repository": {"files": None, "base_commit": "1" * 40}}
    files["base_commit"] = {"files": None, "repo": "o/n"}
    bad = files.get(field, {}) | {field: value}
    assert f"field '{field}'{said}" in refused_row(tmp_path, **bad)


@pytest.mark.parametrize(
    ("runner", "test", "said"),
    [
        ("pytest", "::test_a", "expected test '::test_a' names a file without a name"),
        ("pytest", "test_a", "is 'pytest', and expected test 'test_a' is not a pytest node id"),
        ("unittest", "test a", "is 'unittest', and expected test 'test a' names no module"),
    ],
)
def test_a_test_that_the_runner_does_not_know_is_refused(tmp_path, runner, test, said):
    assert said in refused_row(tmp_path, runner=runner, FAIL_TO_PASS=[test])


def test_a_task_has_a_name_that_can_be_shown():
    for name in ("", " ", "a\nb", "x" * 256, "\0", 3):
        found = rows.refusal([GOOD | {"instance_id": name}])
        assert found.startswith("row 1: field 'instance_id' must be "), name


def test_a_long_value_is_shown_in_part(tmp_path):
    assert "x" * 100 not in refused_row(tmp_path, image="x" * 5000)
    for field in ("runner", "created_at", "image_path"):
        assert "x" * 500 not in refused_row(tmp_path, **{field: "x" * 5000})
    assert "x" * 500 not in refused_row(tmp_path, FAIL_TO_PASS=["x" * 5000])


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
