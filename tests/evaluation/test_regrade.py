"""Regrading of recorded patches, imports of ATIF trajectories, and symptoms of a run."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from episodes import run_command
from runs import native_episode, write_run
from sandbox_fixtures import write_rows

from coding_gym.calls import ModelCall, ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation import export, report
from coding_gym.evaluation.atif import from_atif, import_atif
from coding_gym.evaluation.evaluate import evaluate
from coding_gym.evaluation.health import health_counts, symptoms
from coding_gym.evaluation.regrade import regrade
from coding_gym.grading import grade
from coding_gym.rollout import RunFolder
from coding_gym.task import Task
from coding_gym.tasks.task_row import read_task
from coding_gym.trajectory import Trajectory, Turn


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
    assert len([*regrade(run, [read_task(tiny_row)])]) == 1


def test_exported_atif_is_imported_as_a_gradable_run(
    run: RunFolder, tiny_row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(run.path, "atif", tmp_path / "job")
    monkeypatch.chdir(tmp_path)
    run_command("import", "job", "--tasks", "rows.jsonl", "--out", "back")
    monkeypatch.chdir("/")
    back = RunFolder.open(tmp_path / "back")
    (first, _), (record, _) = run.trajectories(), back.trajectories()
    assert record.patch == first.patch != ""
    assert (record.task_id, record.agent, record.grade) == ("shapes-area", "gold", None)
    for turn, other_turn in zip(record.turns, first.turns, strict=True):
        assert turn.calls[0].name == other_turn.calls[0].name
        assert turn.calls[0].arguments == other_turn.calls[0].arguments
    for message, other_message in zip(record.messages, first.messages, strict=True):
        assert message["role"] == other_message["role"]
        assert message["content"] == other_message["content"]
    summary = report(back).summary()
    assert (summary.count("graded"), "0 of 0" in summary) == (1, False)
    results = regrade(back, [read_task(tiny_row)])
    assert [item.after is not None and item.after.resolved for item in results] == [True, True]
    assert "2 resolved, 0 flips" in run_command("regrade", back.path)
    with pytest.raises(InvalidArgumentError, match="imported"):
        evaluate(back.path, "gold", resume=True)


def test_one_missing_task_affects_only_its_attempts(
    run: RunFolder, tiny_row: dict[str, Any], tmp_path: Path
) -> None:
    export(run.path, "atif", tmp_path / "job")
    harbor_trial(tmp_path / "job/other")
    rows = write_rows(tmp_path / "rows.jsonl", tiny_row, {"instance_id": "malformed"})
    back = import_atif([tmp_path / "job"], tmp_path / "back", tasks=str(rows))
    totals: list[int] = []
    results = {item.task_id: item for item in regrade(back, on_start=totals.append)}
    assert results.keys() == {"shapes-area"}  # the other task has no patch
    assert (totals, len(back.keys())) == ([2], 3)
    (record, *_) = (item for item in back.trajectories() if item.task_id == "shapes-area")
    lost = replace(record, task_id="gone")
    with back.writer() as writer:
        writer.add(lost)
    results = {item.task_id: item for item in regrade(back)}
    assert results["shapes-area"].after is not None
    assert results["gone"].problem
    assert (results["gone"].after, results["gone"].is_flip) == (None, False)
    compared = report(back)
    assert compared.values("code_similarity").keys() == {"shapes-area"}
    assert "no longer in the source, such as gone" in " ".join(compared.caveats)


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


def harbor_trial(folder: Path, **extra: Any) -> Path:
    """Writes a trial of another agent; it has a message in parts and a result without an id."""
    steps = [
        {"step_id": 1, "source": "user", "message": [{"type": "text", "text": "Repair it."}]},
        {
            "step_id": 2,
            "source": "agent",
            "message": "Look.",
            "tool_calls": [
                {"tool_call_id": "c", "function_name": "bash", "arguments": {"command": "ls"}}
            ],
            "observation": {
                "results": [{"content": "a.py", "source_call_id": "c"}, {"content": None}]
            },
            "metrics": {"prompt_tokens": 7, "extra": {}},
        },
    ]
    agent = {"name": "terminus", "version": "1"}
    value = {"schema_version": "ATIF-v1.4", "agent": agent, "steps": steps, **extra}
    (folder / "agent").mkdir(parents=True)
    (folder / "agent/trajectory.json").write_text(json.dumps(value), encoding="utf-8")
    (folder / "config.json").write_text('{"task": {"path": "tasks/shapes"}}', encoding="utf-8")
    return folder


def test_trials_of_other_programs_are_read(tmp_path: Path) -> None:
    for number in range(2):
        harbor_trial(tmp_path / f"job/trial-{number}")
    folder = import_atif([tmp_path / "job"], tmp_path / "run")
    records = [*folder.trajectories()]
    assert [(item.task_id, item.attempt) for item in records] == [("shapes", 0), ("shapes", 1)]
    (turn,) = records[0].turns
    assert turn.calls == (ToolCall("bash", {"command": "ls"}, "c"),)
    assert turn.results == (ToolResult("a.py", None, "c"),)  # not the notice
    assert turn.observation == "a.py\n"
    assert turn.model_call is not None
    assert turn.model_call.prompt_tokens == 7
    assert [item["role"] for item in records[0].messages] == ["user", "assistant", "tool", "user"]
    assert report(folder).num_attempts == 0  # the attempts are not graded


CALL = {"tool_call_id": "c", "function_name": "bash", "arguments": {}}


def with_call(**changes: Any) -> dict[str, Any]:
    step = {"step_id": 1, "source": "agent", "message": "", "tool_calls": [{**CALL, **changes}]}
    return {"agent": {"name": "x"}, "steps": [step]}


STEP = {"step_id": 1, "source": "user", "message": "go"}
MALFORMED = [
    *([], {}, {"agent": {"name": "x"}, "steps": [3]}, {"steps": []}),
    {"agent": {"name": "x", "tool_definitions": [{"name": "bash"}]}, "steps": [STEP]},
    *(with_call(arguments="ls"), with_call(tool_call_id=3)),
]


@pytest.mark.parametrize("text", ["[" * 200_000, *map(json.dumps, MALFORMED)], ids=range(8))
def test_malformed_files_are_not_trajectories(text: str, tmp_path: Path) -> None:
    (tmp_path / "trajectory.json").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=r"trajectory\.json"):
        import_atif([tmp_path], tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("extra", "expected"),
    [({"stop_reason": "max_turns"}, "max_turns"), ({"stop_reason": ["x"]}, None), ({}, None)],
)
def test_the_stop_reason_is_read_from_the_file(extra: Any, expected: str | None) -> None:
    value = {"agent": {"name": "x"}, "steps": [STEP], "final_metrics": {"extra": extra}}
    assert from_atif(value).stop_reason == expected


@pytest.mark.parametrize("key", ["attempts", "seed", "episode", "versions", "created_at"])
def test_config_without_a_required_key_is_refused(key: str, tmp_path: Path) -> None:
    harbor_trial(tmp_path / "job/trial")
    folder = import_atif([tmp_path / "job"], tmp_path / "run")
    folder.config.pop(key)
    folder.save_config()
    with pytest.raises(InvalidArgumentError, match=key):
        RunFolder.open(folder.path)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"tasks": {}}, "tasks.source"),
        ({"agent": {"name": "x"}}, "agent.model"),
        ({"attempts": "many"}, "attempts"),
        ({"versions": []}, "versions"),
    ],
)
def test_config_with_a_malformed_value_is_refused(
    settings: dict[str, Any], field: str, tmp_path: Path
) -> None:
    folder = write_run(tmp_path / "run", [], **settings)
    with pytest.raises(InvalidArgumentError, match=field):
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
    crashed = replace(good, turns=(), error="exit code 1: Traceback …")  # graded nevertheless
    totals = sum(map(health_counts, (good, faulty, silent, crashed, *errors)), Counter[str]())
    results = symptoms(totals)
    counts = {symptom.name: (symptom.count, symptom.total) for symptom in results}
    assert counts == {
        "empty replies": (1, 5),
        "replies cut by length": (1, 5),
        "calls that could not be read": (2, 5),
        "calls of unknown tools": (1, 5),
        "calls in reasoning": (2, 5),
        "prompts that rewrite history": (3, 5),
        "attempts without a tool call": (1, 8),
        "sandbox errors": (1, 8),
        "grading errors": (1, 8),
        "errors of the agent": (1, 8),
        "harnesses that ended with an error": (1, 8),
        "request errors": (1, 8),
    }
    assert all(symptom.remedy for symptom in results)
