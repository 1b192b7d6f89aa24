"""``grade`` by the command line: only what still holds is kept."""

import json
from pathlib import Path

import pytest
from episodes import raising
from grading_fixtures import made_task
from typer.main import get_command
from typer.testing import CliRunner, Result

from coding_gym.cli.app import app
from coding_gym.cli.options import parse_object
from coding_gym.errors import InvalidArgumentError
from coding_gym.grade import GradeReason
from coding_gym.rollout import RunFolder
from coding_gym.tasks import load_tasks

TASKS = load_tasks("bundled", limit=2)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_help_groups_options_under_headings() -> None:
    page = run("eval", "--help").output
    for heading in ("Model", "Tasks", "Sampling", "Limits", "Run", "Output"):
        assert f"─ {heading} ─" in page


def test_predictions_that_changed_get_no_old_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "made.jsonl"
    file.write_text(json.dumps({"instance_id": TASKS[0].task_id, "model_patch": ""}))
    assert run("grade", file).exit_code == 0
    assert run("grade", file).exit_code == 0  # goes on, with nothing left to do
    assert isinstance(run("grade", file, "--split", "test").exception, InvalidArgumentError)
    file.write_text(json.dumps({"instance_id": TASKS[0].task_id, "model_patch": "no patch"}))
    assert "patches" in str(run("grade", file).exception)
    file.write_text(json.dumps({"instance_id": TASKS[0].task_id, "model_patch": ""}))
    monkeypatch.setattr("coding_gym.cli.evaluate.evaluate", raising(KeyboardInterrupt()))
    assert "interrupted; to continue, call the same command" in run("grade", file).output


def test_a_grade_says_which_hunk_does_not_apply(tmp_path: Path) -> None:
    file = tmp_path / "made.jsonl"
    patch = TASKS[0].gold_patch.replace("\n ", "\n other")
    file.write_text(json.dumps({"instance_id": TASKS[0].task_id, "model_patch": patch}))
    said = " ".join(run("grade", file).output.split())
    assert "the patch does not apply: error: patch failed: bourse/" in said


def test_a_patch_that_does_not_apply_is_graded_as_such(tmp_path: Path) -> None:
    file = tmp_path / "made.jsonl"
    file.write_text(json.dumps({"instance_id": TASKS[0].task_id, "model_patch": "no patch"}))
    result, out = run("grade", file), tmp_path / "made.graded"
    assert result.exit_code == 0
    why = "the patch does not apply: git finds no diff in it; it begins 'no patch'"
    verdict = f"✘ {TASKS[0].task_id} 0: patch_not_applied; {why}"
    assert verdict in result.output.replace("\n", " ").replace("  ", " ")
    assert "not resolved: 1 patch_not_applied" in result.output
    (record,) = RunFolder.open(out).trajectories()
    assert record.grade is not None
    assert record.grade.reason is GradeReason.PATCH_NOT_APPLIED
    assert (record.grade.detail, record.patch) == (why, "no patch")
    assert record.settings["tasks"] == "bundled"
    assert run("export", out).exit_code == 0  # as SWE-bench's harness counts it
    report = json.loads((out / "swebench" / "report-0.json").read_text(encoding="utf-8"))
    assert (report["error_ids"], report["empty_patch_ids"]) == ([TASKS[0].task_id], [])
    folder = run("report", tmp_path)
    assert "holds no run; name one of its runs: made.graded" in str(folder.exception)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [{"instance_id": TASKS[n].task_id, "model_patch": ""} for n in (0, 0, 1)],
            "give each instance as many",
        ),
        ({"a": {"instance_id": "a", "model_patch": ""}, "b": "diff"}, "item 2 must be an object"),
        ([{}], "item 1 has no field 'instance_id'"),
        ([{"model_patch": "", "model_name_or_path": "gold"}], "has no field 'instance_id'"),
    ],
)
def test_predictions_that_would_be_counted_wrongly_are_refused(
    rows: object, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "made.json"
    file.write_text(json.dumps(rows))
    assert said in str(run("grade", file).exception)


def test_run_finds_its_tasks_from_any_folder_and_goes_on_with_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text(json.dumps(TASKS[0].to_row()))
    options = ("--agent", "gold", "--tasks", "rows.jsonl", "--limits", "command_timeout_s=60")
    assert run("eval", *options, "--out", tmp_path / "run").exit_code == 0
    monkeypatch.chdir("/")
    assert "could not be loaded" not in run("report", tmp_path / "run").output
    assert run("eval", "--out", tmp_path / "run", "--resume", "--attempts", 2).exit_code == 0
    (record, _) = RunFolder.open(tmp_path / "run").trajectories()
    assert record.settings["command_timeout_s"] == 60
    refused = run("eval", "--out", tmp_path / "run", "--resume", "--seed", 1).exception
    assert "--seed" in str(refused)


@pytest.mark.parametrize("text", ["temperature=0.5,extra={}", '{"temperature": 0.5, "extra": {}}'])
def test_settings_are_pairs_or_json(text: str) -> None:
    assert parse_object("--sampling", text) == {"temperature": 0.5, "extra": {}}


@pytest.mark.parametrize("text", ["temperature", "=1", "[1]", '{"a": '])
def test_settings_that_are_neither_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="--sampling"):
        parse_object("--sampling", text)


def test_eval_has_at_most_28_options() -> None:
    command = get_command(app).commands["eval"]  # type: ignore[attr-defined]
    assert len([one for one in command.params if one.name != "help"]) <= 28


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (("--agent", "chat", "--model", "m", "--script", "f"), "script"),
        (("--model", "m", "--history", "template"), "history"),
        (("--agent", "hf", "--model", "m", "--prices", "input=1,output=1"), "prices"),
        (("--agent", "gold", "--sampling", "temperature=1"), "sampling"),
        (("--model", "m", "--prices", "cached_input=1"), "input"),
        (("--model", "m", "--prices", "input=1,output=1,cache=1"), "cache"),
        (("--model", "m", "--sampling", "temperature=hot"), "temperature"),
    ],
)
def test_arguments_of_other_agents_are_refused(
    arguments: tuple[str, ...], refused: str, tmp_path: Path
) -> None:
    problem = run("eval", *arguments, "--out", tmp_path / "run").exception
    assert isinstance(problem, InvalidArgumentError)
    assert refused in str(problem)
    assert not (tmp_path / "run").exists()


def test_prediction_applied_with_context_is_applied_whole(tmp_path: Path) -> None:
    """Git applies one file, the other needs fuzz: no try may see what an earlier one left."""
    base = {
        "one.py": "def one():\n    return 0\n",
        "two.py": "# a\n# b\n# c\n\ndef two():\n    return 0\n",
    }
    fixed = {name: text.replace("return 0", "return 1") for name, text in base.items()}
    hidden = {
        "test_hidden.py": "from one import one\nfrom two import two\n\n\n"
        "def test_both():\n    assert (one(), two()) == (1, 1)\n"
    }
    task = made_task("both", base, fixed, hidden, fail_to_pass=("test_hidden.py::test_both",))
    rows, predictions = tmp_path / "rows.jsonl", tmp_path / "preds.jsonl"
    rows.write_text(json.dumps(task.to_row()))
    drifted = task.gold_patch.replace(" # c\n", " # other\n", 1)
    assert drifted != task.gold_patch
    predictions.write_text(json.dumps({"instance_id": "both", "model_patch": drifted}))
    run("grade", predictions, "--tasks", rows, "--out", tmp_path / "out")
    (record,) = RunFolder.open(tmp_path / "out").trajectories()
    assert record.resolved
    assert ".rej" not in record.patch
