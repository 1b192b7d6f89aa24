"""``grade`` and ``eval --golden`` by the command line: only what still holds is kept."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from faults import raising
from grading_fixtures import made_task
from typer.testing import CliRunner, Result

from coding_gym.cli.app import app
from coding_gym.episode import Episode
from coding_gym.grade import GradeReason
from coding_gym.rollout import RunFolder
from coding_gym.tasks import load_tasks
from coding_gym.trajectory import StopReason, Trajectory

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
    for patch, said in ((TASKS[0].gold_patch, None), ("no patch", "the patches have changed")):
        file.write_text(json.dumps({"instance_id": TASKS[0].task_id, "model_patch": patch}))
        result = run("grade", file)
        assert (str(result.exception) if result.exception else "").find(said or "") >= 0
        assert bool(result.exit_code) is (said is not None)
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
    again = run("replay", out / "trajectories-0000.jsonl")
    assert "episode 1 is a prediction, with no actions to play again" in str(again.exception)
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
    options = ("--agent", "gold", "--tasks", "rows.jsonl", "--command-timeout", 60)
    assert run("eval", *options, "--out", tmp_path / "run").exit_code == 0
    monkeypatch.chdir("/")
    assert "could not be loaded" not in run("report", tmp_path / "run").output
    more = run("eval", "--resume", tmp_path / "run", "--attempts", 2)
    assert "2 of 2 attempts resolved" in more.output


def test_golden_finds_tasks_that_were_never_broken(tmp_path: Path) -> None:
    sound = {"test_hidden.py": "def test_sum():\n    assert 1 + 1 == 2\n"}
    failing = ("test_hidden.py::test_sum",)
    task = made_task("whole", {"a.py": "x = 1\n"}, {"a.py": "x = 2\n"}, sound, fail_to_pass=failing)
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(task.to_row()))
    result = run("eval", "--golden", "--tasks", rows, "--out", tmp_path / "gate")
    assert "empty: whole" in result.output


def test_golden_is_no_pass_without_verdicts_and_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = Episode.trajectory

    def lost(episode: Episode) -> Trajectory:
        return replace(recorded(episode), grade=None, stop_reason=StopReason.SANDBOX_ERROR)

    out = tmp_path / "gate"
    with monkeypatch.context() as patched:
        patched.setattr(Episode, "trajectory", lost)
        broken = run("eval", "--golden", "--task", TASKS[0].task_id, "--out", out)
    assert broken.exit_code == 1
    assert f"empty: {TASKS[0].task_id} sandbox" in broken.output
    played = run("eval", "--golden", "--model", "m", "--out", tmp_path / "ended")
    assert "takes no --agent, --model or --attempts" in str(played.exception)
    ended = run("eval", "--golden", "--max-cost", 0, "--out", tmp_path / "ended", "-n", 3)
    assert "not complete: 0 of 6" in ended.output
    assert "max_cost of 0 is reached, and a larger bound is needed; to continue: " in ended.output
    assert run("eval", "--resume", out).exit_code == 0
    more = run("eval", "--resume", out, "--task", TASKS[0].task_id, "--task", TASKS[1].task_id)
    assert more.exit_code == 0
    assert len(list(RunFolder.open(out).trajectories())) == 4
