"""The commands `tasks new`, `tasks plan` and `validate`."""

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from episodes import raising, run_command
from sandbox_fixtures import write_rows

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, UnknownTaskError
from coding_gym.tasks import load_tasks
from coding_gym.tasks.new_folder import write_new_task
from coding_gym.tasks.planning import write_plans

pytestmark = pytest.mark.slow

FILES = ["gold.patch", "hidden/tests/test_discounts.py", "task.toml"]
FILES += ["tree/receipt.py", "tree/tests/test_receipt.py"]


def test_new_task_is_valid_and_gets_a_plan(tmp_path: Path) -> None:
    write_new_task(tmp_path / "My task!")
    with pytest.raises(UnknownTaskError, match="coding-gym tasks plan"):
        load_tasks(tmp_path, min_challenge=1)
    planned = run_command("tasks", "plan", tmp_path)
    assert planned.split() == ["my-task", "value", "2", "·", "bits", "1"]
    (task,) = load_tasks(tmp_path, min_challenge=1)
    with pytest.raises(UnknownTaskError, match=r"0 have no plan .* fewer bits"):
        load_tasks(tmp_path, min_challenge=2)
    arguments = ("validate", tmp_path, "--repeats", "1", "--min-challenge", "1")
    with mock.patch("coding_gym.grading.grader.calibrate", raising(AssertionError("a new plan"))):
        printed = run_command(*arguments)
    assert "  value 2 · bits 1\n" in printed
    assert "(structure: none): value 2\n" in printed
    assert printed.endswith("\nvalid 1/1\n")
    weak = task.grading_plan.replace('"is_bit":true', '"is_bit":false', 1)
    plan = tmp_path / "My task!" / "plan.json"
    plan.write_text(weak.replace("[", "[1", 1))
    with pytest.raises(UnknownTaskError, match="1 have no plan"):  # it is of another version
        load_tasks(tmp_path, min_challenge=0)
    for text, code in ((weak, 1), ("[]", 0), (weak.replace(',"', ',"other', 1), 0)):
        plan.write_text(text)
        assert run_command(*arguments, code=code).splitlines()[-1] == f"valid {1 - code}/1"


def test_tasks_whose_tests_cannot_be_negated_need_no_plan(tmp_path: Path) -> None:
    write_new_task(tmp_path / "task")
    manifest = tmp_path / "task" / "task.toml"
    text = manifest.read_text()
    for fields in ('runner = "tap"\ntest_command = "make"\n', 'impossible_test = "{}"\n'):
        test = "tests/test_discounts.py::test_half_a_cent_is_rounded_up"
        manifest.write_text(fields.format(test) + text)
        assert "needs no plan" in run_command("tasks", "plan", tmp_path)
    manifest.write_text(text)
    gold = tmp_path / "task" / "gold.patch"
    gold.write_text(gold.read_text().replace("\n+", "\n+    raise #"))
    assert "no expected test passes" in run_command("tasks", "plan", tmp_path)
    assert not (tmp_path / "task" / "plan.json").exists()


def test_malformed_folder_is_reported_before_any_plan_is_made(tmp_path: Path) -> None:
    write_new_task(tmp_path / "first")
    write_new_task(tmp_path / "last")
    manifest = tmp_path / "last" / "task.toml"
    text = manifest.read_text()
    for malformed_text in ("id = 3\n", f'runner = "nope"\n{text}'):
        manifest.write_text(malformed_text)
        with (
            mock.patch("coding_gym.tasks.planning.new_plan", raising(AssertionError("a plan"))),
            pytest.raises(InvalidTaskError),
        ):
            list(write_plans(tmp_path))


def test_command_names_its_files_and_the_next_command(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    folder.mkdir()  # an empty one is filled
    printed = run_command("tasks", "new", folder)
    written = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
    assert sorted(written) == FILES
    assert all(f"first/{name}" in printed for name in FILES)
    assert f"coding-gym validate {folder}" in printed


def test_new_task_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    run_command("tasks", "new", tmp_path, code=2)
    for folder in (tmp_path, tmp_path / "notes", tmp_path / "…", tmp_path / "notes" / "task"):
        with pytest.raises((InvalidArgumentError, OSError)):
            write_new_task(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


@pytest.fixture
def many(tiny_row: dict[str, Any], tmp_path: Path) -> Path:
    gone = tiny_row | {"instance_id": "gone", "PASS_TO_PASS": ["test_hidden.py::test_gone"]}
    return write_rows(tmp_path / "rows.jsonl", tiny_row, gone)


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
    assert lines[0].startswith("1/2 ✔ shapes-area")
    assert lines[0].endswith("value 2 · bits 0")
    assert lines[1].startswith("2/2 ✘ gone")
    reports = [json.loads(line) for line in report.read_text().splitlines()]
    assert [(one["task_id"], one["ok"]) for one in reports] == [
        ("shapes-area", True),
        ("gone", False),
    ]
    assert report.read_text().startswith(first)
    written = report.read_text()
    assert validated(many, "--out", report, code=1) == lines
    assert report.read_text() == written


def test_validation_killed_in_its_first_report_continues(rows: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    report.write_text('{"task_')
    validated(rows, "--out", report)
    assert [json.loads(line)["ok"] for line in report.read_text().splitlines()] == [True]


def test_task_with_an_error_in_its_report_is_validated_again(rows: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    validated(rows, "--out", report)
    lost = json.loads(report.read_text()) | {"ok": False, "error": "the sandbox died"}
    report.write_text(json.dumps(lost) + "\n")
    validated(rows, "--out", report)
    reports = [json.loads(line) for line in report.read_text().splitlines()]
    assert [one["ok"] for one in reports] == [False, True]


def test_changed_checks_validate_again(rows: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    for options in ((), (), ("--cheats",), ("--cheats",)):
        validated(rows, "--out", report, *options)
    reports = [json.loads(line) for line in report.read_text().splitlines()]
    assert [bool(one["cheats"]) for one in reports] == [False, True]


@pytest.mark.parametrize(
    "text", ['{"task_id": 5, "ok": true}\n{}', "[]\n{}", "[" * 100_000, "\udcff\n{}", "{} notes"]
)
def test_file_with_a_broken_report_is_not_continued(text: str, many: Path, tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    for end in ("\n", ""):
        content = f"\n{text}{end}".encode(errors="surrogateescape")
        path.write_bytes(content)
        (message,) = validated(many, "--out", path, code=2)
        assert "odd.jsonl line 2" in message
        assert path.read_bytes() == content
