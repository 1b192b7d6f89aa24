"""Validation of many tasks by the command: going on where it stopped, and saying why."""

import json
from pathlib import Path
from typing import Any

import pytest
from test_cli import run

from coding_gym.cli import validate
from coding_gym.tasks.validation_report import ValidationReport


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
    for line in ("5", '{"task_id": 5, "ok": true}', "[" * 100_000, "\udcff"):
        odd.write_text(f"\n{line}\n{{}}\n", errors="surrogateescape")
        text = run("validate", str(many), "--report", str(odd), "--resume", code=2)
        assert "odd.jsonl line 2 is no report of this command" in text
        assert len(text.splitlines()) == 1


def test_a_report_that_is_there_is_neither_overwritten_nor_emptied(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "report.jsonl"
    first = json.dumps(ValidationReport(task_id="other", ok=True, key="k").to_json()) + "\n"
    report.write_text(first)
    text = run("validate", str(many), "--report", str(report), code=2)
    assert "report.jsonl is there already; go on with it (--resume), or" in text
    assert report.read_text() == first

    def killed(*_: Any, **__: Any) -> None:
        assert report.read_text() == first
        raise KeyboardInterrupt

    report.write_text(first + '{"task_id": "cut o')
    monkeypatch.setattr(validate, "validate_tasks", killed)
    with pytest.raises(KeyboardInterrupt):
        validate.validate(str(many), repeats=1, report=report, resume=True)
    assert report.read_text() == first


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ({"error": "no disk"}, "not built"),
        ({"flaky_tests": ("t",)}, "flaky tests"),
        ({"gold_reasons": ("resolved", "timeout")}, "gold fails"),
        ({"noop_reasons": ("tests_failed", "timeout")}, "base timed out"),
        ({"noop_reasons": ("tampered",), "leaks": ("a.py",)}, "base tampered"),
        ({"noop_reasons": ("resolved",)}, "base passes"),
        ({"noop_reasons": ("empty_patch",)}, "base: empty_patch"),
        ({"noop_reasons": ("tests_failed",), "passing_tests": ("t",)}, "base passes"),
        ({"leaks": ("a.py",)}, "leak"),
        ({"leak_error": "no git"}, "leaks unknown"),
    ],
)
def test_each_kind_of_reason_is_called_what_it_is(found: dict[str, Any], kind: str) -> None:
    assert validate._kind(ValidationReport(task_id="a", ok=False, **found)) == kind
