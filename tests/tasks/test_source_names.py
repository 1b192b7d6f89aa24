"""What the text of a source stands for: formats by name, files, folders of files."""

import json
import re
from pathlib import Path

import pytest
from rows import loaded, row

from coding_gym.errors import InvalidTaskError, UnknownTaskError
from coding_gym.task import GitTree, ImageTree
from coding_gym.tasks import load_tasks
from coding_gym.tasks.sources import CHECKOUTS, ROW_FORMATS, unified_row


def write(path: Path, *rows: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def ids(source: object) -> list[str]:
    return [task.task_id[-1] for task in load_tasks(source)]


def test_a_folder_of_files_gives_all_rows_in_the_order_of_paths(tmp_path: Path):
    write(tmp_path / "data" / "test-00001-of-00002.jsonl", row(2))
    write(tmp_path / "data" / "test-00000-of-00002.jsonl", row(1))
    write(tmp_path / "rust" / "owner.jsonl", row(3))
    write(tmp_path / ".cache" / "x.jsonl", row(9))
    tasks = load_tasks(tmp_path)
    assert [(t.task_id[-1], t.split) for t in tasks] == [("1", "test"), ("2", "test"), ("3", "")]


def test_a_row_that_names_its_split_keeps_it(tmp_path: Path):
    path = write(tmp_path / "train.jsonl", row(1), row(2, split="held-out"))
    assert [task.split for task in load_tasks(path)] == ["train", "held-out"]


def test_a_folder_of_task_folders_stays_one_whatever_lies_beside(tmp_path: Path):
    write(tmp_path / "results" / "rows.jsonl", row(1))
    task = tmp_path / "my-task"
    (task / "tree").mkdir(parents=True)
    (task / "task.toml").write_text('id = "x"\nproblem_statement = "y"\nfail_to_pass = ["a::b"]\n')
    with pytest.raises(InvalidTaskError, match="test 'a::b' is in a file that is neither"):
        load_tasks(tmp_path)
    assert ids(f"swe-bench:{tmp_path}") == ["1"]


def test_a_format_that_is_misspelt_is_met_with_what_is_near(tmp_path: Path):
    path = write(tmp_path / "rows.jsonl", row(1))
    assert ids(f"swe-gym:{path}") == ["1"]
    with pytest.raises(UnknownTaskError, match="did you mean 'swe-smith:'"):
        load_tasks(f"swe-smth:{path}")
    with pytest.raises(UnknownTaskError, match="'gone'"):
        load_tasks("defects4j:gone")


def test_every_source_has_a_name_for_the_command_line():
    names = [*CHECKOUTS, *ROW_FORMATS]
    assert len(set(names)) == len(names) >= 8
    assert all(re.fullmatch("[a-z0-9-]+", name) for name in names)


ODD = [None, 3, [], {}, "text", {"a": 1}, [1, "b"]]


@pytest.mark.parametrize("name", ROW_FORMATS)
def test_no_format_fails_otherwise_than_by_its_own_error(name: str):
    keys = """
        repo patch image_name FAIL_TO_PASS PASS_TO_PASS eval_script log_parser language
        install_config requirements docker_image test_patch
        problem_statement files test_commands responses_create_params instance_id lang hints"""
    refused: list[str] = []
    for key in keys.split():
        for value in ODD:
            for others in ({}, dict.fromkeys(keys.split(), "x")):
                try:
                    unified_row({**others, key: value}, "row 1", ROW_FORMATS[name])
                except InvalidTaskError as error:
                    refused.append(str(error))
    assert refused
    assert all(text.startswith("row 1") and "\n" not in text for text in refused)


@pytest.mark.parametrize("value", ODD)
def test_no_format_fails_to_say_whether_a_row_is_its_own(value: object):
    for row_format in ROW_FORMATS.values():
        keys = ("repo", "files", "install_config", "instance_id")
        assert row_format.reads(dict.fromkeys(keys, value)) in (True, False)


def test_an_environment_in_an_image_needs_no_install_commands_and_keeps_the_bug():
    bug = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"
    bare = row(install_commands=["make"], image="i", reverse_patch=bug)
    task = loaded(bare, environments={"owner__name-1": {"image_path": "/testbed"}})
    assert (task.install_commands, task.interpreter) == ((), "image")
    assert task.tree == ImageTree(bug)
    assert load_tasks([task.to_row()]) == (task,)
    task = loaded(bare, environments={"owner__name-1": {"interpreter": "3.9"}})
    assert task.install_commands == ("make",)
    assert task.tree == GitTree("https://github.com/owner/name", bug)
