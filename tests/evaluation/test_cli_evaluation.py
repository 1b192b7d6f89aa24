"""The commands ``grade``, ``eval`` and ``fix``: arguments, results and resumed runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from episodes import raising
from model_server import Answer, ChatServer, by_turn, message
from sandbox_fixtures import commit
from typer.testing import CliRunner, Result

from coding_gym.cli.app import app
from coding_gym.cli.options import parse_object, task_source
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation import report
from coding_gym.grade import GradeReason
from coding_gym.run_folder import RunFolder
from coding_gym.tasks import load_tasks

TASKS = load_tasks("bundled", limit=2)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def predictions(path: Path, patch: str) -> Path:
    path.write_text(json.dumps({"instance_id": TASKS[0].task_id, "model_patch": patch}))
    return path


def test_changed_tasks_predictions_and_sandboxes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = predictions(tmp_path / "predictions.jsonl", "")
    assert run("grade", file).exit_code == 0
    assert run("grade", file).exit_code == 0  # continues a complete run
    assert "--sandbox" in str(run("grade", file, "--sandbox", '{"shell": "persistent"}').exception)
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(replace(TASKS[0], problem_statement="Another.").to_row()))
    assert isinstance(run("grade", file, "--tasks", rows).exception, InvalidArgumentError)
    assert isinstance(run("grade", predictions(file, "no patch")).exception, InvalidArgumentError)
    monkeypatch.setattr("coding_gym.cli.evaluate.evaluate", raising(KeyboardInterrupt()))
    assert run("grade", predictions(file, "")).exit_code == 130


def test_task_paths_become_absolute_and_names_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("jobs", "images", "swebench", "bundled", "test"):
        Path(name).mkdir()
    assert task_source("jobs", Path("jobs"), None) == {
        "source": f"{tmp_path}/jobs",
        "repositories": f"{tmp_path}/jobs",
    }
    for source, environments in (("bundled", "images"), ("owner/name:test", "swebench")):
        arguments = {"source": source, "environments": environments}
        assert task_source(source, None, Path(environments)) == arguments


@pytest.mark.parametrize("patch", ["no patch", TASKS[0].gold_patch.replace("\n ", "\n other")])
def test_patch_that_does_not_apply_is_graded_as_not_applied(patch: str, tmp_path: Path) -> None:
    result = run("grade", predictions(tmp_path / "predictions.jsonl", patch))
    assert result.exit_code == 0
    assert GradeReason.PATCH_NOT_APPLIED in result.output
    (record,) = RunFolder.open(tmp_path / "predictions.graded").trajectories()
    assert record.grade is not None
    assert record.grade.reason is GradeReason.PATCH_NOT_APPLIED
    assert record.grade.detail
    assert record.patch == patch
    assert record.settings["tasks"] == "bundled"
    assert "predictions.graded" in str(run("report", tmp_path).exception)  # the error names the run
    graded = tmp_path / "predictions.graded"
    assert GradeReason.PATCH_NOT_APPLIED in run("show", graded).output
    assert "coding-gym grade" in str(run("eval", "--out", graded, "--resume").exception)


def test_diff_file_is_graded_at_the_only_task(tmp_path: Path) -> None:
    folder = tmp_path / "my-task"
    assert run("tasks", "new", folder).exit_code == 0
    graded = run("grade", folder / "gold.patch", "--tasks", folder)
    assert "1 of 1 attempt resolved" in graded.output
    assert "--resume" not in graded.output  # `eval` cannot continue it
    assert run("grade", folder / "gold.patch", "--tasks", folder).exit_code == 0
    problem = run("grade", folder / "gold.patch").exception
    assert isinstance(problem, InvalidArgumentError)
    assert "instance_id" in str(problem)


@pytest.mark.parametrize(
    ("rows", "field"),
    [
        ([{"instance_id": TASKS[n].task_id, "model_patch": ""} for n in (0, 0, 1)], ""),
        ({"a": {"instance_id": "a", "model_patch": ""}, "b": "diff"}, "2"),
        ([{}], "instance_id"),
        ([{"model_patch": "", "model_name_or_path": "gold"}], "instance_id"),
    ],
)
def test_invalid_predictions_are_refused(rows: object, field: str, tmp_path: Path) -> None:
    file = tmp_path / "predictions.json"
    file.write_text(json.dumps(rows))
    problem = run("grade", file).exception
    assert isinstance(problem, InvalidArgumentError)
    assert field in str(problem)


def test_resumed_run_finds_its_tasks_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text(json.dumps(TASKS[0].to_row()))
    options = ("--agent", "gold", "--tasks", "rows.jsonl", "--limits", "command_timeout_s=60")
    assert run("eval", *options, "--out", tmp_path / "run").exit_code == 0
    monkeypatch.chdir("/")
    assert report(tmp_path / "run").values("code_similarity")
    assert run("eval", "--out", tmp_path / "run", "--resume", "--attempts", 2).exit_code == 0
    (record, _) = RunFolder.open(tmp_path / "run").trajectories()
    assert record.settings["command_timeout_s"] == 60
    problem = run("eval", "--out", tmp_path / "run", "--resume", "--seed", 1).exception
    assert "--seed" in str(problem)


@pytest.mark.parametrize("text", ["temperature=0.5,extra={}", '{"temperature": 0.5, "extra": {}}'])
def test_settings_are_pairs_or_json(text: str) -> None:
    assert parse_object("--sampling", text) == {"temperature": 0.5, "extra": {}}


@pytest.mark.parametrize("text", ["temperature", "=1", "[1]", '{"a": '])
def test_settings_in_another_form_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="--sampling"):
        parse_object("--sampling", text)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("--agent", "hf", "--model", "m", "--prices", "input=1,output=1"), "prices"),
        (("--agent", "gold", "--sampling", "temperature=1"), "sampling"),
        (("--model", "m", "--prices", "cached_input=1"), "input"),
        (("--model", "m", "--prices", "input=1,output=1,cache=1"), "cache"),
        (("--model", "m", "--sampling", "temperature=hot"), "temperature"),
    ],
)
def test_arguments_of_other_agents_are_refused(
    arguments: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    problem = run("eval", *arguments, "--out", tmp_path / "run").exception
    assert isinstance(problem, InvalidArgumentError)
    assert name in str(problem)
    assert not (tmp_path / "run").exists()


def test_run_without_replies_prints_the_remedy(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with ChatServer(lambda _: Answer({})) as server:
        model = ("--model", "tiny", "--base-url", server.base_url)
        result = run("eval", *model, "-n", 1, "--out", out)
    assert result.exit_code == 1
    assert "request errors: 1 of 1; remedy: start the server" in result.stdout


_EDIT = {"apply_patch": {"file": "a.py", "search": "a - b", "replace": "a + b"}}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    commit(tmp_path / "project", {"a.py": "def add(a, b):\n    return a - b\n"})
    return tmp_path / "project"


def fix(repository: Path, *options: str, calls: Any = _EDIT) -> Result:
    with ChatServer(by_turn(message(calls=calls), message(calls={"submit": {}}))) as server:
        command = ["fix", "add() subtracts", "--repo", str(repository), "--base-url"]
        return CliRunner().invoke(app, [*command, server.base_url, "--model", "tiny", *options])


def test_fix_prints_the_diff_and_changes_nothing(repository: Path) -> None:
    result = fix(repository, "--limits", "command_timeout_s=60,max_seconds=500")
    assert result.exit_code == 0, result.output
    assert "+    return a + b" in result.stdout
    assert "a - b" in (repository / "a.py").read_text()


def test_fix_prints_bytes_that_are_not_utf8(repository: Path) -> None:
    result = fix(repository, calls={"shell": {"cmd": r"printf '# \351\n' >> a.py"}})
    assert result.exit_code == 0, result.output
    assert b"+# \xe9\n" in result.stdout_bytes


def test_fix_needs_a_repository(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["fix", "it", "--repo", str(tmp_path)])
    assert isinstance(result.exception, InvalidArgumentError)
