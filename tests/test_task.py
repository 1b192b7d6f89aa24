import json
import math
from typing import Any

import numpy as np
import pytest

from coding_gym.errors import InvalidTaskError
from coding_gym.task import Task

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
    ("change", "field"),
    [
        ({"instance_id": None}, "instance_id"),
        ({"FAIL_TO_PASS": None, "FAIL_TO_PAS": []}, "FAIL_TO_PASS"),
        ({"instalcommands": []}, "instalcommands"),
        ({"FAIL_TO_PASS": "[" * 100_000}, "FAIL_TO_PASS"),
        ({"FAIL_TO_PASS": "not a list"}, "FAIL_TO_PASS"),
        ({"PASS_TO_PASS": [1]}, "PASS_TO_PASS"),
        ({"problem_statement": None}, "problem_statement"),
        ({"patch": 3}, "patch"),
        *(({"grading_timeout_s": value}, "grading_timeout_s") for value in (0, 1e10, math.inf)),
        *(({"gold_duration_s": value}, "gold_duration_s") for value in (-1, math.nan)),
        ({"files": ["a"]}, "files"),
        ({"install_commands": ["a\0b"]}, "install_commands"),
        ({"base_commit": ""}, "base_commit"),
        ({"repo": ""}, "repo"),
    ],
)
def test_malformed_row_is_refused_with_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidTaskError, match=f"'{field}'") as caught:
        Task.from_row({k: v for k, v in (ROW | change).items() if v is not None}, where="row 7")
    assert str(caught.value).startswith("row 7")
    assert "\n" not in str(caught.value)


def test_a_logged_task_gives_nothing_away() -> None:
    shown = repr(Task.from_row(ROW))
    assert "acme__tool-1" in shown
    assert "gold" not in shown
    assert "t.py" not in shown
