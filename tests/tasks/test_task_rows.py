"""Rows in SWE-bench's schema, from files and lists."""

import json

import git
import numpy as np
import pytest
from rows import loaded, refusal, row

from coding_gym.run_folder import RunFolder
from coding_gym.task import FolderTree, GitTree
from coding_gym.tasks import load_tasks
from coding_gym.tasks.task_row import read_task
from coding_gym.trajectory import Trajectory


@pytest.mark.parametrize(
    "tree",
    [
        {"files": {"a.py": "1\n"}},
        {"folder": "/somewhere", "reverse_patch": "p"},
        {"repository": "/clones/tool.git"},
        {},
    ],
)
def test_row_survives_the_round_trip_through_json(tree):
    task = read_task(row(**tree))
    assert read_task(json.loads(json.dumps(task.to_row()))) == task


def test_lists_of_tests_are_read_in_every_spelling_of_datasets():
    for written in (["a", "b"], '["a", "b"]', "['a', 'b']", np.array(["a", "b"])):
        assert read_task(row(FAIL_TO_PASS=written)).fail_to_pass == ("a", "b"), written


def test_unknown_keys_are_ignored_and_numbers_are_versions():
    assert read_task(row(extra=1, version=3.1)).version == "3.1"
    for written, read in ((0, 0.0), (2.5, 2.5), (None, 0.0)):
        assert read_task(row(gold_duration_s=written)).gold_duration_s == read


def test_longest_id_is_usable_as_a_file_name(tmp_path):
    task_id = loaded(row(instance_id="修" * 22 + "aa")).task_id
    with RunFolder.create(tmp_path / "run", {}).writer() as folder:
        folder.add(Trajectory(task_id=task_id, attempt=10**8, error_class="sandbox"))
    assert [record.task_id for record in folder.errors()] == [task_id]


def test_logged_task_reveals_no_test_or_repair():
    logged = repr(read_task(row(patch="gold")))
    assert "owner__name-1" in logged
    assert "gold" not in logged
    assert "t.py" not in logged


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), "utf-8")
    return path


def write_json(path, rows):
    path.write_text(json.dumps(rows), "utf-8")
    return path


def write_parquet(path, rows):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("rows.jsonl", write_jsonl),
        ("rows.json", write_json),
        ("rows.parquet", write_parquet),
        ("rows.JSONL", write_jsonl),
    ],
)
def test_every_kind_of_file_gives_the_same_tasks(tmp_path, name, write):
    fields = {"problem_statement": "broken\u2028here", "PASS_TO_PASS": '["t.py::test_b"]'}
    rows = [row(1, **fields, something_of_the_dataset=1), row(2)]
    tasks = load_tasks(write(tmp_path / name, rows))
    assert tasks == load_tasks(rows)
    assert [t.task_id for t in tasks] == ["owner__name-1", "owner__name-2"]
    assert tasks[0].tree == GitTree("https://github.com/owner/name")
    assert tasks[0].expected_tests == ("t.py::test_a", "t.py::test_b")
    assert tasks[0].problem_statement == "broken\u2028here"


def test_files_may_hold_one_row_blank_lines_and_a_byte_order_mark(tmp_path):
    assert load_tasks(write_json(tmp_path / "one.json", row())) == load_tasks([row()])
    path = tmp_path / "rows.jsonl"
    path.write_text("\ufeff" + json.dumps(row()) + "\n\n  \n" + json.dumps(row(2)), "utf-8")
    assert len(load_tasks(str(path))) == 2


def test_paths_in_a_file_start_at_its_folder(tmp_path):
    (tmp_path / "program").mkdir()
    git.Repo.init(tmp_path / "clone").close()
    git.Repo.init(tmp_path / "me@here:name").close()
    addresses = ["ssh://git@h/o/n", "git@h:o/n", "HTTPS://h/n"]
    names = ["clone", "me@here:name", *addresses]
    rows = [row(0, folder="program")]
    rows += [row(number, repository=name) for number, name in enumerate(names, 1)]
    program, *trees = [t.tree for t in load_tasks(write_jsonl(tmp_path / "rows.jsonl", rows))]
    assert program == FolderTree(str(tmp_path / "program"))
    folders = [str(tmp_path / name) for name in names[:2]]
    assert trees == [GitTree(repository) for repository in folders + addresses]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("rows.jsonl", b'{"a": 1\n', "line 1"),
        ("rows.jsonl", b"[1]\n", "line 1"),
        ("rows.jsonl", b"\xff\n", ""),
        ("rows.jsonl", b"", ""),
        ("rows.json", b"{", ""),
        ("rows.json", b"[[]]", "item 1"),
        ("rows.json", b"[]", ""),
        ("rows.parquet", b"PAR0", ""),
        ("rows.csv", b"a,b", ""),
    ],
)
def test_unreadable_file_is_named_with_the_place(tmp_path, name, content, place):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    found = refusal(tmp_path / name)
    assert found.startswith(str(tmp_path / name))
    assert place in found


def test_a_repeated_id_is_refused_with_both_places(tmp_path):
    path = write_jsonl(tmp_path / "rows.jsonl", [row(1), row(2), row(1)])
    found = refusal(path)
    assert f"{path} line 3" in found
    assert f"'owner__name-1' is already in {path} line 1" in found


TESTS = [f"t.py::test_{name}" for name in "abcd"]
ROW = row(FAIL_TO_PASS=TESTS[:2], PASS_TO_PASS=TESTS[2:])
OTHER = ROW | {"instance_id": "owner__name-2", "interpreter": "3.10"}


def test_entries_of_environments_override_fields_of_rows(tmp_path):
    entry = {
        "interpreter": "3.9",
        "install_commands": ["python -m pip install -e ."],
        "environment_setup_commit": "1" * 40,
        "visible_test_command": "make check",
        "excluded_tests": ["t.py::test_a", "t.py::test_c"],
        "grading_timeout_s": 300,
    }
    path = tmp_path / "environments.jsonl"
    path.write_text(json.dumps(entry | {"instance_id": "owner__name-1"}) + "\n")
    first, second = load_tasks([ROW, OTHER], environments=path)
    assert second == load_tasks([OTHER], environments={"owner__name-2": {}})[0]
    assert first == loaded(ROW, environments={"owner__name-1": entry})
    for name, value in entry.items():
        assert getattr(first, name) == (tuple(value) if isinstance(value, list) else value), name
    assert (first.fail_to_pass, first.pass_to_pass) == (("t.py::test_b",), ("t.py::test_d",))
    assert first.base_commit == ROW["base_commit"]


@pytest.mark.parametrize(
    ("runner", "test", "read"),
    [
        ("pytest", "./tests/test_b.py::test_a[./x]", "tests/test_b.py::test_a[./x]"),
        ("pytest", ".//./t.py::test_a", "t.py::test_a"),
        ("command", "./run all", "./run all"),
    ],
)
def test_id_of_a_test_is_read_without_a_leading_dot(runner, test, read):
    row = {**ROW, "runner": runner, "FAIL_TO_PASS": [test], "impossible_test": test}
    task = loaded(row | {"excluded_tests": [f"{test}2"]})
    assert (task.fail_to_pass, task.impossible_test) == ((read,), read)
    assert task.excluded_tests == (f"{read}2",)


def test_excluded_tests_of_a_row_are_not_expected() -> None:
    task = loaded(ROW | {"excluded_tests": [TESTS[0], TESTS[2]]})
    assert (task.fail_to_pass, task.pass_to_pass) == ((TESTS[1],), (TESTS[3],))
    message = refusal([ROW | {"excluded_tests": TESTS[:2]}])
    assert message.startswith("row 1 (owner__name-1): excluded_tests must keep at least one test")


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ({"instance_id": "x", "interpreter": 3.9}, "interpreter"),
        ({"instance_id": "x", "install_commands": "a"}, "install_commands"),
        ({"instance_id": "x", "grading_timeout_s": 0}, "grading_timeout_s"),
        ({"instance_id": "x", "python": "3.9"}, "python"),
        ({"interpreter": "3.9"}, "instance_id"),
        (["x"], "x"),
    ],
)
def test_wrong_line_of_environments_is_refused_with_file_and_field(tmp_path, line, field):
    path = tmp_path / "environments.jsonl"
    path.write_text("\n" + json.dumps(line) + "\n")
    message = refusal([ROW], environments=path)
    assert message.startswith(f"{path} line 2: ")
    assert repr(field) in message


def test_repeated_entry_of_environments_is_refused(tmp_path):
    path = tmp_path / "environments.jsonl"
    entry = {"instance_id": "owner__name-1", "grading_timeout_s": 5}
    path.write_text(f"{json.dumps(entry)}\n{json.dumps(entry)}\n")
    message = refusal([ROW], environments=path)
    assert message.startswith(f"{path} line 2: field 'instance_id'")
    assert "'owner__name-1'" in message
    assert f"{path} line 1" in message


@pytest.mark.parametrize(
    ("task_id", "entry"),
    [
        ("owner__name-1", {"excluded_tests": TESTS[:2]}),
        ("owner__name-1", {"install_command": []}),
        ("owner__name-9", {}),
    ],
)
def test_entry_without_effect_is_refused(task_id, entry):
    refusal([ROW], environments={task_id: entry})
