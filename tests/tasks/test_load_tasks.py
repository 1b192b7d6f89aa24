"""Loading tasks: names of sources, filters, and unusable rows."""

import dataclasses
import json
import math
import re
from pathlib import Path

import pytest
import rows
from rows import refusal
from sandbox_fixtures import write_rows

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, UnknownTaskError
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


def ids(source: object = ROWS, **filters: object) -> list[str]:
    return [task.task_id for task in load_tasks(source, **filters)]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["c", "a", "b", "calc-add-sign"]),
        ({"task_ids": ["b", "c"]}, ["c", "b"]),
        ({"task_ids": "b"}, ["b"]),
        ({"split": "train"}, ["c", "calc-add-sign"]),
        ({"split": ["train", "test"], "limit": 3}, ["c", "a", "b"]),
        ({"split": "test", "task_ids": ["b", "c"], "limit": 9}, ["b"]),
    ],
)
def test_filters_are_exact_and_keep_the_order(filters, expected):
    assert ids(**filters) == expected


@pytest.mark.parametrize(
    ("filters", "error"),
    [
        ({"split": "tset"}, UnknownTaskError),
        ({"split": "train", "task_ids": "b"}, UnknownTaskError),
        ({"task_ids": ["calc-add-sing"]}, UnknownTaskError),
        ({"limit": 0}, InvalidArgumentError),
        ({"limit": True}, InvalidArgumentError),
        ({"limit": 1.5}, InvalidArgumentError),
        ({"split": 3, "source": "bundled"}, InvalidArgumentError),
        ({"split": [3]}, InvalidArgumentError),
        ({"split": []}, InvalidArgumentError),
        ({"task_ids": []}, InvalidArgumentError),
    ],
)
def test_unusable_filter_is_refused_with_its_value(filters, error):
    with pytest.raises(error) as caught:
        ids(**filters)
    field, value = next(iter(filters.items()))
    text = value[0] if field == "task_ids" and value else field
    assert str(text) in str(caught.value)


@pytest.mark.parametrize(
    "source", ["bundeld", "nofile.jsonl", "./no/such/folder", Path("/nonexistent"), "tasks/mine"]
)
def test_missing_source_is_named(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks").mkdir()  # so that tasks/mine is no data set
    with pytest.raises(UnknownTaskError, match=re.escape(str(source))):
        load_tasks(source)


@pytest.mark.parametrize("source", [3, None, ROWS[0]])
def test_source_of_another_type_is_refused(source):
    with pytest.raises(InvalidArgumentError):
        load_tasks(source)


@pytest.mark.parametrize("environments", ["swebnch", "gone.jsonl"])
def test_missing_environments_are_named(environments):
    with pytest.raises(InvalidArgumentError, match=environments):
        load_tasks(ROWS, environments=environments)


def test_loaded_tasks_are_a_source_and_found_by_id():
    tasks = load_tasks(ROWS)
    assert find_task(tasks, "b") is tasks[2]
    loaded = load_tasks("bundled", limit=2)
    assert load_tasks(list(loaded)) == loaded


def test_refused_row_beyond_the_limit_is_not_read():
    tasks = load_tasks("bundled", limit=2)
    for filters in ({}, {"min_challenge": 0}):
        assert load_tasks([*tasks, {}], limit=2, **filters) == tasks
        with pytest.raises(InvalidTaskError, match="row 3"):
            load_tasks([*tasks, {}], **filters)


def test_folder_of_files_gives_rows_in_path_order(tmp_path: Path):
    write_rows(tmp_path / "data" / "test-00001-of-00002.jsonl", rows.row(2))
    write_rows(tmp_path / "data" / "test-00000-of-00002.jsonl", rows.row(1))
    write_rows(tmp_path / "rust" / "owner.jsonl", rows.row(3), rows.row(4, split="held-out"))
    write_rows(tmp_path / ".cache" / "x.jsonl", rows.row(9))
    assert [(task.task_id[-1], task.split) for task in load_tasks(tmp_path)] == [
        *(("1", "test"), ("2", "test"), ("3", ""), ("4", "held-out"))
    ]


def test_folder_of_task_folders_ignores_files_of_rows(tmp_path: Path):
    write_rows(tmp_path / "results" / "rows.jsonl", rows.row(1))
    task = tmp_path / "my-task"
    (task / "tree").mkdir(parents=True)
    (task / "task.toml").write_text('id = "x"\nproblem_statement = "y"\nfail_to_pass = ["a::b"]\n')
    with pytest.raises(InvalidTaskError, match="a::b"):
        load_tasks(tmp_path)


GOOD = row("good")


def refused_row(tmp_path: Path, **change: object) -> str:
    path = write_rows(tmp_path / "rows.jsonl", GOOD, GOOD | {"instance_id": "bad"} | change)
    message = refusal(path)
    assert message.startswith(f"{path} line 2 (bad): ")
    assert len(message) < 600  # long values are truncated
    return message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("runner", "pytst"),
        ("FAIL_TO_PASS", ["t.py::test\0_a"]),
        ("FAIL_TO_PASS", []),
        ("created_at", "zz"),
        ("created_at", "1111-01-01"),
        ("version", float("nan")),
        ("image", "x" * 5000),
        ("image", "~nobody-of-that-name/x"),
        ("folder", "x" * 5000),
        ("test_command", "a\0b"),
        ("base_commit", None),
        *(("repository", path) for path in ("gone", "~nobody-here/a", "x/" * 5000)),
        ("patch", "nonsense"),
        ("test_patch", "nonsense"),
        ("instalcommands", []),
        ("FAIL_TO_PASS", "[" * 100_000),
        *(("grading_timeout_s", value) for value in (0, 1e10, math.inf)),
        *(("gold_duration_s", value) for value in (-1, math.nan)),
        ("repo", ""),
        *(("image_path", path) for path in ("testbed", "/", "/a/../b")),
        ("install_commands", ["true"]),
        ("image", ""),
    ],
)
def test_unusable_row_is_refused_with_line_and_field(tmp_path, field, value):
    files = {"folder": {"files": None}, "repository": {"files": None, "base_commit": "1" * 40}}
    files["base_commit"] = {"files": None, "repo": "o/n"}
    files["repo"] = {"files": None, "base_commit": "1" * 40}
    files["image"] = {"interpreter": "image"}
    files["image_path"] = {"files": None, "image": "i"}
    files["install_commands"] = files["image_path"] | {"image_path": "/testbed"}
    assert f"field '{field}'" in refused_row(tmp_path, **files.get(field, {}) | {field: value})


@pytest.mark.parametrize(
    ("runner", "test"),
    [
        *(("pytest", "::test_a"), ("pytest", "test_a"), ("cargo", "test a")),
        *(("swebench", "test_a (t.Case)\ndocstring"), ("swebench", "test_a (t.Case) (i=1)")),
        *(("swebench", "(i=1)"), ("pytest", "t.py::test_a\ntext")),
        ("pytest", "/testbed/t.py::test_a"),
    ],
)
def test_test_id_that_the_runner_does_not_know_is_refused(tmp_path, runner, test):
    fields = {"test_command": "run", "test_report": "django" if runner == "swebench" else ""}
    assert repr(test) in refused_row(tmp_path, runner=runner, FAIL_TO_PASS=[test], **fields)


def test_task_id_is_one_printable_line():
    too_long = ("修" * 27, "n" * 201, "/" * 67)  # as the name of a file
    for name in (None, "", " ", "a\nb", "\0", 3, *too_long):
        assert refusal([GOOD | {"instance_id": name}]).startswith("row 1: field 'instance_id'")


def test_id_in_both_lists_of_tests_is_refused():
    both = row("d", PASS_TO_PASS=["t.py::test_b", "t.py::test_a"])
    assert "t.py::test_a" in refusal([ROWS[0], both])
    assert load_tasks([ROWS[0], both], task_ids="c")
    refusal([both], environments={"d": {"excluded_tests": ["t.py::test_a"]}})


def test_issues_and_patches_may_hold_any_character():
    patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\0\n+b\n"
    (task,) = load_tasks([GOOD | {"problem_statement": "a\0b", "patch": patch}])
    assert (task.problem_statement, task.gold_patch) == ("a\0b", patch)


def test_rows_are_checked_after_environments_and_filters():
    other = GOOD | {"instance_id": "odd", "FAIL_TO_PASS": ["case", "other"]}
    entry = {"runner": "command", "excluded_tests": ["other"]}
    tasks = load_tasks([GOOD, other], environments={"odd": entry})
    assert [task.runner for task in tasks] == ["pytest", "command"]
    assert len(load_tasks([GOOD, other], task_ids="good")) == 1
    message = refusal([GOOD, other], environments={"odd": {"runner": "junit"}})
    assert message.startswith("row 2 (odd): field 'runner'")


@pytest.mark.parametrize("key", ["instance_id", "id"])
def test_bad_rows_do_not_hide_other_rows(tmp_path: Path, key: str):
    path = tmp_path / "rows.jsonl"
    lines = [
        GOOD | {"instance_id": "bad", "patch": 3},
        GOOD,
        GOOD | {"instance_id": "odd", "repo": 3},
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines) + "{\n"
    path.write_text(text.replace("instance_id", key))
    assert ids(path, task_ids=["good"]) == ["good"]
    assert "(bad): field 'patch'" in refusal(path, task_ids=["bad", "good"])
    message = refusal(path)
    assert "line 1 (bad): field 'patch'" in message
    assert "line 3 (odd)" in message
    assert "line 4" in message


def test_bad_folder_does_not_hide_other_folders(tmp_path: Path):
    for name in ("good", "bad"):
        write_new_task(tmp_path / name)
    (tmp_path / "bad" / "task.toml").write_text('id = "bad"\n')
    assert ids(tmp_path, task_ids=["good"]) == ["good"]
    assert "bad/task.toml (bad): field" in refusal(tmp_path)


def test_tasks_and_folders_are_checked_as_rows_are(tmp_path):
    task = dataclasses.replace(rows.loaded(GOOD), runner="nope")
    assert refusal([task]).startswith("row 1 (good): field 'runner'")
    write_new_task(tmp_path / "task")
    manifest = tmp_path / "task" / "task.toml"
    text = manifest.read_text("utf-8")
    assert "::test_half" in text
    manifest.write_text(text.replace("::test_half", "::test\\u0000half"), "utf-8")
    assert "NUL" in refusal(manifest.parent)
