"""The command ``validate`` on many tasks."""

import json
from pathlib import Path
from typing import Any

import pytest
from episodes import run_command

from coding_gym.cli import validate
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


def validated(*arguments: object, code: int = 0) -> list[str]:
    return run_command("validate", *map(str, arguments), "--repeats", "1", code=code).splitlines()


def test_excluded_tests_make_a_task_valid(many: Path, tmp_path: Path) -> None:
    out = tmp_path / "excluded.jsonl"
    lines = validated(many, "--exclude", out, code=1)
    assert lines[-1] == "valid 1/2"
    assert [line.split()[0] for line in lines[-2:]] == ["gone", "valid"]
    excluded = {"instance_id": "gone", "excluded_tests": ["test_hidden.py::test_gone"]}
    assert excluded in map(json.loads, out.read_text().splitlines())
    assert validated(many, "--environments", out)[-1] == "valid 2/2"


def test_stopped_validation_continues_by_task_id(many: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    validated(many, "-n", "1", "--out", report)
    first = report.read_text()
    report.write_text(first + '{"task_id": "go')  # a process that was killed while it wrote
    lines = validated(many, "--out", report, code=1)
    assert not any("✔" in line for line in lines)
    assert any(line.startswith("2/2 ✘ gone") for line in lines)
    reports = [json.loads(line) for line in report.read_text().splitlines()]
    assert [(one["task_id"], one["ok"]) for one in reports] == [
        ("shapes-area", True),
        ("gone", False),
    ]
    assert report.read_text().startswith(first)
    assert not any("✘" in line for line in validated(many, "--out", report, code=1))


BROKEN = [
    '{"a": 1}',
    '{"task_id": 5, "ok": true}',
    "[" * 100_000,
    "\udcff",
]


@pytest.mark.parametrize("line", BROKEN)
def test_file_with_a_broken_report_is_not_continued(line: str, many: Path, tmp_path: Path) -> None:
    odd = tmp_path / "odd.jsonl"
    content = f"\n{line}\n{{}}\n".encode(errors="surrogateescape")
    odd.write_bytes(content)
    (message,) = validated(many, "--out", odd, code=2)
    assert "odd.jsonl line 2" in message
    assert odd.read_bytes() == content


def test_long_reason_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    validate.summarise([ValidationReport(task_id="far", ok=False, error="no " * 200 + "end")])
    assert " no end\n" in capsys.readouterr().out
