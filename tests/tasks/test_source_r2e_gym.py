"""R2E-Gym: a commit, the tests that it makes pass, and the logs of both runs."""

import json
from typing import Any

import pytest

from coding_gym.errors import InvalidTaskError
from coding_gym.patch import Patch
from coding_gym.task import GitTree
from coding_gym.tasks import load_tasks

SHA = "c" * 40
TESTS = "def test_a():\n    assert True\n"
LOG = """\
r2e_tests/test_1.py .F
=========================== short test summary info ============================
\x1b[32mPASSED\x1b[0m r2e_tests/test_1.py::TestIt::test_kept[a-1.5]
{mended} r2e_tests/test_1.py::test_mended
FAILED r2e_tests/test_1.py::test_never - AssertionError: assert 1 == 2
==== 1 failed in 0.57s ====
"""


def change(path: str, **more: object) -> dict[str, Any]:
    lines = [
        {"type": "context", "content": "a = 1"},
        {"type": "deleted", "content": "b = 2"},
        {"type": "added", "content": "b = 3"},
        {"type": "note", "content": "No newline at end of file"},
    ]
    hunk = {
        "descriptor": {
            "old_range": {"start": 1, "length": 2},
            "new_range": {"start": 1, "length": 2},
            "section": "def f():",
        },
        "line_group": {"all_lines": lines},
    }
    return {
        "header": {"file": {"path": path}, "misc_line": None},
        "minus_file": {"path": f"a/{path}"},
        "plus_file": {"path": f"b/{path}"},
        "hunks": [hunk],
        "is_binary_file": False,
    } | more


COMMIT = {
    "file_diffs": [
        change("Orange/data.py"),
        change("Orange/tests/test_data.py"),
        change("logo.png", is_binary_file=True, hunks=[], minus_file=None, plus_file=None),
    ],
    "commit_date": "2021-02-03T04:05:06+00:00",
}
RUNS = {
    "test_file_names": ["test_1.py"],
    "test_file_codes": [TESTS],
    "old_commit_res_stdout": LOG.format(mended="FAILED"),
    "new_commit_res_stdout": LOG.format(mended="PASSED"),
}
EXPECTED = {"TestIt.test_kept[a-1.5]": "PASSED", "test_mended": "PASSED", "test_never": "FAILED"}


def row(**more: object) -> dict[str, object]:
    return {
        "repo_name": "orange3",
        "docker_image": f"namanjain12/orange3_final:{SHA}",
        "commit_hash": SHA,
        "parsed_commit_content": json.dumps(COMMIT),
        "execution_result_content": json.dumps(RUNS),
        "expected_output_json": json.dumps(EXPECTED),
        "problem_statement": "Read this:\n[ISSUE]\nIt is wrong.\n[/ISSUE]\n",
        "prompt": "…",
    } | more


def test_a_commit_is_a_task():
    (task,) = load_tasks([row()])
    assert task.task_id == f"orange3-{SHA}"
    assert task.tree == GitTree("https://github.com/biolab/orange3")
    assert task.base_commit == f"{SHA}^"
    assert task.problem_statement == "It is wrong."
    assert task.fail_to_pass == ("r2e_tests/test_1.py::test_mended",)
    assert task.pass_to_pass == ("r2e_tests/test_1.py::TestIt::test_kept[a-1.5]",)
    assert task.created_at == "2021-02-03T04:05:06+00:00"
    assert task.image == f"namanjain12/orange3_final:{SHA}"
    assert Patch(task.test_patch).apply({}) == {"r2e_tests/test_1.py": TESTS}
    assert load_tasks([task.to_row()]) == (task,)


def test_the_repair_is_the_part_of_the_commit_that_is_no_test():
    (task,) = load_tasks([row()])
    patch = Patch(task.gold_patch)
    assert patch.paths == {"Orange/data.py"}
    after = patch.apply({"Orange/data.py": "a = 1\nb = 2\n"})
    assert after == {"Orange/data.py": "a = 1\nb = 3"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"repo_name": "own"}, "field 'repo_name' must be one of aiohttp, "),
        ({"commit_hash": None}, "field 'commit_hash' is missing"),
        ({"parsed_commit_content": "{"}, "field 'parsed_commit_content' is not JSON: "),
        (
            {"parsed_commit_content": '{"file_diffs": [{"header": {}}]}'},
            "field 'parsed_commit_content' has a file change without 'file'",
        ),
        (
            {"parsed_commit_content": '{"file_diffs": 3}'},
            "field 'parsed_commit_content' must be an object with a list of file_diffs",
        ),
        ({"expected_output_json": "[]"}, "field 'expected_output_json' must be a JSON object"),
        (
            {"expected_output_json": '{"test_never": "PASSED"}'},
            "field 'execution_result_content' has no test that fails before the commit",
        ),
        (
            {"execution_result_content": '{"test_file_names": ["a"], "test_file_codes": []}'},
            "field 'execution_result_content' must be an object with equally many test_file_names",
        ),
        (
            {"execution_result_content": json.dumps(RUNS | {"test_file_names": ["../x.py"]})},
            "field 'execution_result_content' must be an object with equally many test_file_names",
        ),
    ],
)
def test_a_malformed_row_is_refused_with_row_field_and_value(change, message):
    with pytest.raises(InvalidTaskError) as refused:
        load_tasks([row(**change)])
    assert str(refused.value).startswith(f"row 1: {message}")
