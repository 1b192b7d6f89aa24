import json
from typing import Any

import numpy as np
import pytest

from coding_gym.errors import InvalidTaskError
from coding_gym.task import FilesTree, FolderTree, GitTree, Task

ROW: dict[str, Any] = {
    "instance_id": "acme__tool-1",
    "repo": "acme/tool",
    "base_commit": "0" * 40,
    "problem_statement": "It breaks.",
    "patch": "gold",
    "test_patch": "tests",
    "FAIL_TO_PASS": ["t.py::a", "t.py::b"],
    "PASS_TO_PASS": ["t.py::c"],
}


@pytest.mark.parametrize(
    "tree",
    [
        {"files": {"a.py": "1\n"}},
        {"folder": "/somewhere", "reverse_patch": "p"},
        {"repository": "/clones/tool.git"},
        {},
    ],
)
def test_a_row_survives_the_round_trip_through_json(tree: dict[str, Any]) -> None:
    task = Task.from_row(ROW | tree)
    assert Task.from_row(json.loads(json.dumps(task.to_row()))) == task


def test_where_the_tree_comes_from_follows_the_row() -> None:
    assert Task.from_row(ROW | {"files": {"a": "b"}}).tree == FilesTree({"a": "b"})
    assert Task.from_row(ROW | {"folder": "/x"}).tree == FolderTree("/x")
    assert Task.from_row(ROW | {"repository": "/y.git"}).tree == GitTree("/y.git")
    assert Task.from_row(ROW).tree == GitTree("https://github.com/acme/tool")


def test_test_lists_are_read_in_every_spelling_that_datasets_use() -> None:
    for written in [
        ["t.py::a", "t.py::b"],
        '["t.py::a", "t.py::b"]',
        "['t.py::a', 't.py::b']",
        np.array(["t.py::a", "t.py::b"]),
    ]:
        task = Task.from_row(ROW | {"FAIL_TO_PASS": written})
        assert task.fail_to_pass == ("t.py::a", "t.py::b"), written


def test_unknown_keys_are_ignored_and_numbers_are_versions() -> None:
    assert Task.from_row(ROW | {"extra": 1, "version": 3.1}).version == "3.1"
    for written, read in ((0, 0.0), (2.5, 2.5), (None, 0.0)):
        assert Task.from_row(ROW | {"gold_duration_s": written}).gold_duration_s == read


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"instance_id": None}, "row 7: field 'instance_id' is missing"),
        ({"FAIL_TO_PASS": None, "FAIL_TO_PAS": []}, "did you mean 'FAIL_TO_PASS'?"),
        ({"instalcommands": []}, "field 'instalcommands' is not known; did you mean 'install_c"),
        ({"FAIL_TO_PASS": "[" * 100_000}, "field 'FAIL_TO_PASS' must be a list of texts"),
        ({"grading_timeout_s": 1e10}, "above 0 and at most 1e+09, got 10000000000.0"),
        ({"problem_statement": None}, "field 'problem_statement' is missing"),
        ({"patch": 3}, "field 'patch' must be text, got 3"),
        ({"FAIL_TO_PASS": "not a list"}, "got 'not a list'"),
        ({"PASS_TO_PASS": [1]}, "field 'PASS_TO_PASS' must be a list of texts"),
        ({"grading_timeout_s": 0}, "field 'grading_timeout_s' must be a number of seconds above 0"),
        ({"grading_timeout_s": float("inf")}, "of seconds above 0 and at most 1e+09, got inf"),
        ({"gold_duration_s": -1}, "field 'gold_duration_s' must be a number of seconds of 0 or"),
        ({"gold_duration_s": float("nan")}, "of 0 or more and at most 1e+09, got nan"),
        ({"files": ["a"]}, "field 'files' must be an object of texts by path"),
        ({"install_commands": ["a\0b"]}, "'install_commands' must be a list of texts of Unicode"),
        ({"base_commit": ""}, "field 'base_commit' is missing"),
        ({"repo": ""}, "field 'repo' is missing"),
    ],
)
def test_a_malformed_row_is_refused_with_its_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidTaskError) as caught:
        Task.from_row({k: v for k, v in (ROW | change).items() if v is not None}, where="row 7")
    assert message in str(caught.value)
    assert str(caught.value).startswith("row 7")
    assert "\n" not in str(caught.value)


def test_a_logged_task_gives_nothing_away() -> None:
    shown = repr(Task.from_row(ROW))
    assert "acme__tool-1" in shown
    assert "gold" not in shown
    assert "t.py" not in shown


def test_expected_tests_are_named_once() -> None:
    task = Task.from_row(ROW | {"PASS_TO_PASS": ["t.py::a", "t.py::c"]})
    assert task.expected_tests == ("t.py::a", "t.py::b", "t.py::c")
