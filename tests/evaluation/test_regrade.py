"""Recorded patches graded again, and the health of a run."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from episodes import run_command
from made_runs import make_run, resolved_episode
from sandbox_fixtures import write_rows

from coding_gym.calls import ToolCall
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
    seen: list[Any] = []
    results = regrade(run, on_result=seen.append)
    assert len(results) == len(seen) == 2
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
    results = regrade(run)
    assert [(one.is_flip, one.is_changed) for one in results] == [(True, True)] * 2
    printed = run_command("regrade", run.path, code=1)
    assert "shapes-area attempt 0: resolved" in printed
    assert "2 flips" in printed


def test_one_missing_task_does_not_hide_the_others(
    rows: Path, tiny_row: dict[str, Any], tmp_path: Path
) -> None:
    write_rows(rows, tiny_row, tiny_row | {"instance_id": "gone"})
    run = evaluate(tmp_path / "run", "gold", tasks=str(rows))
    write_rows(rows, tiny_row)
    results = {result.task_id: result for result in regrade(run)}
    assert results["shapes-area"].after is not None
    gone = results["gone"]
    assert gone.problem
    assert (gone.after, gone.is_flip) == (None, False)


def test_a_run_without_grades_has_no_flips_and_its_own_sandbox(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = {"grading": "none", "sandbox": {"limits": {"num_open_files": 99}}}
    run = evaluate(tmp_path / "run", "gold", tasks=str(rows), episode=episode)
    specs: list[Any] = []

    def noting(task: Task, template: Any, patch: Any, **options: Any) -> Any:
        specs.append(template.spec)
        return grade(task, template, patch, **options)

    monkeypatch.setattr("coding_gym.evaluation.regrade.grade", noting)
    (result,) = regrade(run)
    assert (result.before, result.is_flip) == (None, False)
    assert result.after is not None
    assert result.after.resolved
    assert [spec.limits.num_open_files for spec in specs] == [99]


def test_every_symptom_is_counted_with_a_remedy() -> None:
    good = resolved_episode("one", "")
    cut = Turn(action="", model_call=ModelCall(finish_reason="length"))
    other = Turn(action="go", calls=(ToolCall("browse", {}), ToolCall("shell", {}, error="bad")))
    thought = {"role": "assistant", "content": "", "reasoning_content": '<tool_call>{"name": 1}'}
    sick = replace(good, turns=(cut, other), num_prefix_breaks=3, messages=(thought,))
    errors = (
        Trajectory(task_id="one", error="x", error_class=error_class)
        for error_class in ("sandbox", "verifier", "timeout", "agent")
    )
    totals = sum(map(health_counts, (good, sick, *errors)), Counter[str]())
    results = symptoms(totals)
    counts = {one.name: (one.count, one.total) for one in results}
    assert counts == {
        "empty replies": (1, 4),
        "replies cut by length": (1, 4),
        "calls that could not be read": (2, 5),
        "calls of unknown tools": (1, 5),
        "calls in reasoning": (1, 4),
        "prompts that rewrite history": (3, 4),
        "lost sandboxes": (1, 6),
        "lost grades": (1, 6),
        "errors of the agent": (1, 6),
        "lost requests": (1, 6),
    }
    assert all(one.remedy for one in results)


def test_a_report_names_failures_with_remedies(tiny_row: dict[str, Any], tmp_path: Path) -> None:
    result = report(make_run(tmp_path / "run", tiny_row))
    assert {one.name for one in result.health} >= {"calls that could not be read", "lost requests"}
    assert all(one.remedy for one in result.health)
