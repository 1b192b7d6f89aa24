"""R2E-Gym: a commit, the tests that it makes pass, and the logs of both runs."""

import json
from typing import Any

import pytest
from rows import loaded, refusal

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


LINES = {
    "context": "a = 1",
    "deleted": "b = 2",
    "added": "b = 3",
    "note": "No newline at end of file",
}


def change(path: str, **more: object) -> dict[str, Any]:
    lines = [{"type": kind, "content": text} for kind, text in LINES.items()]
    both = {"start": 1, "length": 2}
    hunk = {
        "descriptor": {"old_range": both, "new_range": both, "section": "def f():"},
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
    task = loaded(row())
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
    task = loaded(row())
    patch = Patch(task.gold_patch)
    assert patch.paths == {"Orange/data.py"}
    after = patch.apply({"Orange/data.py": "a = 1\nb = 2\n"})
    assert after == {"Orange/data.py": "a = 1\nb = 3"}


RESULT, COMMIT_FIELD = "execution_result_content", "parsed_commit_content"
EQUALLY_MANY = "must be an object with equally many test_file_names"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("repo_name", "own", "must be one of aiohttp, "),
        ("commit_hash", None, "is missing"),
        (COMMIT_FIELD, "{", "is not JSON: "),
        (COMMIT_FIELD, '{"file_diffs": [{"header": {}}]}', "has a file change without 'file'"),
        (COMMIT_FIELD, '{"file_diffs": 3}', "must be an object with a list of file_diffs"),
        ("expected_output_json", "[]", "must be a JSON object"),
        (RESULT, '{"test_file_names": ["a"], "test_file_codes": []}', EQUALLY_MANY),
        (RESULT, json.dumps(RUNS | {"test_file_names": ["../x.py"]}), EQUALLY_MANY),
    ],
)
def test_a_malformed_row_is_refused_with_row_field_and_value(field, value, said):
    assert refusal([row(**{field: value})]).startswith(f"row 1: field '{field}' {said}")


def test_a_commit_that_repairs_no_test_is_refused():
    found = refusal([row(expected_output_json='{"test_never": "PASSED"}')])
    assert found.startswith(f"row 1: field '{RESULT}' has no test that fails before the commit")
