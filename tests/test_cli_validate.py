"""Validation of many tasks by the command: going on where it stopped, and saying why."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from command_line import run

from coding_gym.cli import validate
from coding_gym.cli.console import terminal
from coding_gym.tasks.validation_report import ValidationReport

pytestmark = pytest.mark.slow


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
    text = run("validate", str(many), "--repeats", "1", "--exclude", str(out), code=1)
    assert "gold tests_failed: 1" in text.splitlines()
    assert text.splitlines()[-1] == "valid 1/2"
    left_out = {"instance_id": "gone", "excluded_tests": ["test_hidden.py::test_gone"]}
    assert left_out in map(json.loads, out.read_text().splitlines())
    again = run("validate", str(many), "--repeats", "1", "--environments", str(out))
    assert again.splitlines()[-1] == "valid 2/2"


def test_a_validation_goes_on_where_it_was_stopped(many: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    run("validate", str(many), "--repeats", "1", "-n", "1", "--out", str(report))
    first = report.read_text()
    report.write_text(first + '{"task_id": "go')  # a process that was killed while it wrote
    command = ["validate", str(many), "--repeats", "1", "--resume", str(report)]
    text = run(*command, code=1)
    assert "✔" not in text
    assert text.splitlines()[0] == f"kept 1 of 1 verdicts in {report}"
    assert text.splitlines()[1].startswith("2/2 ✘ gone")
    lines = report.read_text().splitlines()
    assert [json.loads(line)["ok"] for line in lines] == [True, False]
    assert lines[0] + "\n" == first
    assert "✘" not in run(*command, code=1)  # nothing is left to be done


def test_what_cannot_be_gone_on_with_is_said(many: Path, tmp_path: Path) -> None:
    odd = tmp_path / "odd.jsonl"
    assert "'--resume'" in run("validate", str(many), "--resume", str(odd), code=2)
    odd.write_text('{"a": 1}\n{}\n')
    text = run("validate", str(many), "--resume", str(odd), code=2)
    assert "odd.jsonl line 1 is no report of this command" in text
    assert odd.read_text() == '{"a": 1}\n{}\n'
    for line in ("5", '{"task_id": 5, "ok": true}', "[" * 100_000, "\udcff"):
        odd.write_text(f"\n{line}\n{{}}\n", errors="surrogateescape")
        text = run("validate", str(many), "--resume", str(odd), code=2)
        assert "odd.jsonl line 2 is no report of this command" in text
        assert len(text.splitlines()) == 1


def test_a_report_that_is_there_is_neither_overwritten_nor_emptied(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "report.jsonl"
    first = json.dumps(ValidationReport(task_id="other", ok=True).to_json()) + "\n"
    report.write_text(first)
    text = run("validate", str(many), "--out", str(report), code=2)
    assert "report.jsonl is there already; go on with it (--resume), or" in text
    assert report.read_text() == first

    def killed(*_: Any, **__: Any) -> None:
        assert report.read_text() == first
        raise KeyboardInterrupt

    report.write_text(first + '{"task_id": "cut o')
    monkeypatch.setattr(validate, "validate_tasks", killed)
    with pytest.raises(typer.Exit):
        validate.validate(str(many), repeats=1, resume=report)
    assert report.read_text() == first


@pytest.mark.parametrize("has_report", [True, False])
def test_an_interrupt_says_how_far_it_came_and_how_to_go_on(
    has_report: bool,
    many: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: Any, on_result: Callable[[ValidationReport], None], **__: Any) -> None:
        on_result(ValidationReport(task_id="first", ok=True))
        raise KeyboardInterrupt

    report = tmp_path / "my report.jsonl" if has_report else None
    monkeypatch.setattr(validate, "validate_tasks", interrupted)
    with pytest.raises(typer.Exit) as stopped:
        validate.validate(str(many), repeats=1, out=report)
    assert stopped.value.exit_code == 130
    shown, last = filter(None, capsys.readouterr().out.splitlines())
    assert shown.startswith("1/2 ✔ first")
    way_on = f"go on with --resume '{report}'" if report else "nothing was kept; with --out FILE"
    assert last.startswith(f"stopped after 1 of 2; {way_on}")


def test_tasks_without_a_gold_patch_are_counted(tiny_row: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    passes = {"instance_id": "passes", "FAIL_TO_PASS": tiny_row["PASS_TO_PASS"], "PASS_TO_PASS": []}
    rows = [tiny_row | {"patch": ""}, tiny_row | {"patch": ""} | passes]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = run("validate", str(path), "--repeats", "1", code=1).splitlines()
    assert {"base resolved: 1; gold empty_patch: 1", "gold empty_patch: 1; base resolved: 1"} & set(
        lines
    )
    assert lines[-1] == "valid 0/2"
    assert sum("there is no gold patch" in line for line in lines) == 4


def test_a_long_reason_keeps_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    report = ValidationReport(task_id="far", ok=False, error="no " * 200 + "clone it yourself")
    validate.summarise(terminal(), [report])
    assert "clone it yourself\n" in capsys.readouterr().out


def test_each_kind_of_reason_is_called_what_it_is() -> None:
    for found, kind in [
        ({"error": "no disk"}, "not built"),
        ({"gold_reasons": ("resolved", "timeout")}, "gold timeout"),
        ({"noop_reasons": ("tampered",), "gold_reasons": ("timeout",)}, "base tampered"),
        ({"noop_reasons": ("tests_failed",), "passing_tests": ("t",)}, "tests pass at base"),
        ({"leaks": ("a.py",)}, "leak"),
        ({"leak_error": "no git"}, "leaks unknown"),
        ({"levels": {"end": 1}}, "weak challenge"),
    ]:
        report = ValidationReport(task_id="a", ok=False, **found)
        assert validate.kind_of(report) == kind, found
