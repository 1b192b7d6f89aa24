"""Regrading of recorded patches, and symptoms of a run."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from episodes import run_command
from runs import native_episode, write_run
from sandbox_fixtures import write_rows

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation import report
from coding_gym.evaluation.evaluate import evaluate
from coding_gym.evaluation.health import health_counts, symptoms
from coding_gym.evaluation.regrade import regrade
from coding_gym.grading import grade
from coding_gym.rollout import RunFolder
from coding_gym.task import Task
from coding_gym.trajectory import ModelCall, Trajectory, Turn


@pytest.fixture
def run(rows: Path, tmp_path: Path) -> RunFolder:
    return evaluate(tmp_path / "run", "gold", tasks=str(rows), attempts=2)


def test_unchanged_tasks_give_the_same_verdicts(run: RunFolder) -> None:
    results = [*regrade(run)]
    assert len(results) == 2
    for result in results:
        assert result.before is not None
        assert result.after is not None
        assert (result.is_flip, result.is_changed) == (False, False)
        assert result.after.plan == result.before.plan != ""


def test_flips_after_a_change_of_the_tests_are_named(
    run: RunFolder, rows: Path, tiny_row: dict[str, Any]
) -> None:
    tests = tiny_row["test_patch"].replace("== 14", "== 15")
    rows.write_text(json.dumps({**tiny_row, "test_patch": tests}) + "\n", encoding="utf-8")
    results = [*regrade(run)]
    assert [(result.is_flip, result.is_changed) for result in results] == [(True, True)] * 2
    printed = run_command("regrade", run.path, code=1)
    assert "shapes-area attempt 0: resolved" in printed
    assert "2 flips" in printed


def test_a_run_of_listed_tasks_needs_them_again(tiny_row: dict[str, Any], tmp_path: Path) -> None:
    run = evaluate(tmp_path / "run", "gold", tasks=[tiny_row], episode={"grading": "none"})
    assert "report(run, tasks=...)" in report(run).caveats[0]
    with pytest.raises(InvalidArgumentError, match="passed as a list"):
        next(regrade(run))
    assert len([*regrade(run, [Task.from_row(tiny_row)])]) == 1


def test_one_missing_task_affects_only_its_attempts(
    run: RunFolder, rows: Path, tiny_row: dict[str, Any]
) -> None:
    write_rows(rows, tiny_row, {"instance_id": "malformed"})
    record = next(run.trajectories())
    run.config["tasks"]["task_ids"].append("gone")
    run.save_config()
    run.add(replace(record, task_id="gone"))
    run.add(replace(record, task_id="untouched", patch="", grade=None))
    results = {item.task_id: item for item in regrade(run)}
    assert results.keys() == {"shapes-area", "gone"}  # an attempt without a patch has no grade
    assert results["shapes-area"].after is not None
    assert results["gone"].problem
    assert (results["gone"].after, results["gone"].is_flip) == (None, False)
    compared = report(run)
    assert compared.values("code_similarity").keys() == {"shapes-area"}
    assert "gone" in " ".join(compared.caveats)


def test_ungraded_run_is_graded_in_its_sandbox_without_flips(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = {"grading": "none", "sandbox": {"limits": {"num_open_files": 99}}}
    run = evaluate(tmp_path / "run", "gold", tasks=str(rows), episode=episode)
    specs: list[Any] = []

    def recording_grade(task: Task, template: Any, patch: Any, **options: Any) -> Any:
        specs.append(template.spec)
        return grade(task, template, patch, **options)

    monkeypatch.setattr("coding_gym.evaluation.regrade.grade", recording_grade)
    (result,) = regrade(run)
    assert (result.before, result.is_flip) == (None, False)
    assert result.after is not None
    assert result.after.resolved
    assert [spec.limits.num_open_files for spec in specs] == [99]


@pytest.mark.parametrize("key", ["attempts", "seed", "episode", "versions", "created_at"])
def test_config_without_a_required_key_is_refused(key: str, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [])
    folder.config.pop(key)
    folder.save_config()
    with pytest.raises(InvalidArgumentError, match=key):
        RunFolder.open(folder.path)


def test_every_symptom_is_counted_with_a_remedy() -> None:
    good = native_episode()
    cut = Turn(action="", model_call=ModelCall(finish_reason="length"))
    other = Turn(action="go", calls=(ToolCall("browse", {}), ToolCall("shell", {}, error="bad")))
    thought = {"role": "assistant", "content": "", "reasoning_content": '<tool_call>{"name": 1}'}
    coder = {**thought, "reasoning_content": "<function=shell>\n<parameter=cmd>ls"}
    faulty = replace(good, turns=(cut, other), num_prefix_breaks=3, messages=(thought, coder))
    errors = (
        Trajectory(task_id="one", error="x", error_class=error_class)
        for error_class in ("sandbox", "verifier", "timeout", "agent")
    )
    silent = replace(good, turns=(Turn(action="I see.", model_call=ModelCall()),))
    totals = sum(map(health_counts, (good, faulty, silent, *errors)), Counter[str]())
    results = symptoms(totals)
    counts = {symptom.name: (symptom.count, symptom.total) for symptom in results}
    assert counts == {
        "empty replies": (1, 5),
        "replies cut by length": (1, 5),
        "calls that could not be read": (2, 5),
        "calls of unknown tools": (1, 5),
        "calls in reasoning": (2, 5),
        "prompts that rewrite history": (3, 5),
        "attempts without a tool call": (1, 7),
        "sandbox errors": (1, 7),
        "grading errors": (1, 7),
        "errors of the agent": (1, 7),
        "request errors": (1, 7),
    }
    assert all(symptom.remedy for symptom in results)
