"""Validation of many tasks by the command: going on where it stopped, and saying why."""

import json
from pathlib import Path
from typing import Any

import pytest
from test_cli import run


@pytest.fixture
def many(tiny_row: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    rows = [
        tiny_row,
        tiny_row | {"instance_id": "gone", "PASS_TO_PASS": ["test_hidden.py::test_gone"]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_table_says_why_and_exclusions_mend_what_they_can(many: Path, tmp_path: Path) -> None:
    out = tmp_path / "excluded.jsonl"
    text = run("validate", str(many), "--repeats", "1", code=1)
    assert "gold fails: 1" in text.splitlines()[-2]
    assert text.splitlines()[-1] == "valid 1/2"
    text = run("validate", str(many), "--repeats", "1", "--exclude", str(out))
    assert text.splitlines()[-2:] == ["1 expected tests left out", "valid 2/2"]
    (entry,) = map(json.loads, out.read_text().splitlines())
    assert entry == {"instance_id": "gone", "excluded_tests": ["test_hidden.py::test_gone"]}
    again = run("validate", str(many), "--repeats", "1", "--environments", str(out))
    assert again.splitlines()[-1] == "valid 2/2"


def test_a_validation_goes_on_where_it_was_stopped(many: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    run("validate", str(many), "--repeats", "1", "--limit", "1", "--report", str(report))
    first = report.read_text()
    report.write_text(first + '{"task_id": "go')  # a process that was killed while it wrote
    command = ["validate", str(many), "--repeats", "1", "--report", str(report), "--resume"]
    text = run(*command, code=1)
    assert "✔" not in text
    lines = report.read_text().splitlines()
    assert [json.loads(line)["ok"] for line in lines] == [True, False]
    assert lines[0] + "\n" == first
    assert "✘" not in run(*command, code=1)  # nothing is left to be done


def test_what_cannot_be_gone_on_with_is_said(many: Path, tmp_path: Path) -> None:
    assert "--resume needs --report" in run("validate", str(many), "--resume", code=2)
    odd = tmp_path / "odd.jsonl"
    odd.write_text('{"a": 1}\n{}\n')
    text = run("validate", str(many), "--report", str(odd), "--resume", code=2)
    assert "odd.jsonl line 1 is no report of this command" in text
    assert odd.read_text() == '{"a": 1}\n{}\n'
