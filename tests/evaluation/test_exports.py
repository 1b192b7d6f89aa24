"""Exports of runs to the formats of other tools."""

import json
from pathlib import Path
from typing import Any

import pytest
from runs import TASK, make_exported_run

from coding_gym.errors import UnknownNameError
from coding_gym.evaluation import export
from coding_gym.grade import GradeReason


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_exported_run(tmp_path / "run")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_atif_keeps_tool_results_in_the_calling_step(run: Path, tmp_path: Path) -> None:
    paths = export(run, "atif", tmp_path / "out")
    assert len(paths) == 6
    (atif,) = lines(tmp_path / f"out/{TASK}-0/agent/trajectory.json")
    assert atif["schema_version"] == "ATIF-v1.7"
    (trial,) = lines(tmp_path / f"out/{TASK}-0/config.json")
    assert (trial["trial_name"], trial["agent"]["name"]) == (f"{TASK}-0", "chat")
    assert [step["source"] for step in atif["steps"]] == ["system", "user", "agent", "agent"]
    assert [step["step_id"] for step in atif["steps"]] == [1, 2, 3, 4]
    look = atif["steps"][2]
    assert [call["arguments"] for call in look["tool_calls"]] == [{"cmd": "ls"}, {}]
    assert look["tool_calls"][1]["extra"] == {"arguments_text": "{cmd"}
    ids = [result["source_call_id"] for result in look["observation"]["results"]]
    assert ids == ["a", "b"]
    verdict = atif["final_metrics"]["extra"]
    assert (verdict["reward"], verdict["challenge"]) == (1.0, "value 2 · structure 1")
    assert verdict["levels"] == {"value": 2, "structure": 1}
    assert atif["final_metrics"]["total_prompt_tokens"] == 9
    assert "total_completion_tokens" not in atif["final_metrics"]  # one count is unknown


def test_swebench_predictions_keep_patches_as_they_are(run: Path, tmp_path: Path) -> None:
    export(run, "swebench", tmp_path)
    predictions = {row["instance_id"]: row for row in lines(tmp_path / "predictions-1.jsonl")}
    assert predictions.keys() == {TASK, "empty", "wrong"}
    assert predictions["wrong"]["model_patch"] == "diff \udcff"
    assert predictions["wrong"]["model_name_or_path"] == "owner/model"


def test_sft_rows_are_resolved(run: Path, tmp_path: Path) -> None:
    (path,) = export(run, "sft", tmp_path)
    row, other = lines(path)
    assert [(entry["task_id"], entry["attempt"]) for entry in (row, other)] == [
        (TASK, 0),
        (TASK, 1),
    ]
    assert [message["role"] for message in row["messages"]][2:4] == ["assistant", "tool"]
    assert row["messages"][1]["content"] == "It adds. \ufffd"
    assert row["tools"][0]["function"]["name"] == "shell"


def test_unknown_formats_are_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="atiff"):
        export(run, "atiff", tmp_path)


# -- Logs of Inspect ---------------------------------------------------------------------------


@pytest.mark.nightly
def test_inspect_reads_verdicts_messages_calls_and_usage(run: Path, tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log", reason="needs the extra `inspect`")
    (path,) = export(run, "inspect", tmp_path / "out")
    samples = {(sample.id, sample.epoch): sample for sample in log.read_eval_log(path).samples}
    ids = (TASK, "empty", "wrong", "lost")
    assert samples.keys() == {(task_id, epoch) for task_id in ids for epoch in (1, 2)}
    assert samples[TASK, 1].scores["resolved"].value == 1.0
    wrong = samples["wrong", 1].scores["resolved"]
    assert (wrong.value, wrong.explanation) == (0.0, GradeReason.TESTS_FAILED)
    assert not samples["lost", 1].scores
    assert samples["lost", 1].error.message == "x"
    assert "test_hidden" not in samples[TASK, 1].model_dump_json()
    _, user, reply, result, error, last, _ = samples[TASK, 1].messages
    assert (user.role, user.text) == ("user", "It adds. \ufffd")
    assert (reply.content[0].reasoning, reply.text) == ("Hm.", "Look.")
    assert [(call.id, call.arguments) for call in reply.tool_calls] == [
        ("a", {"cmd": "ls"}),
        ("b", {}),
    ]
    assert [bool(call.parse_error) for call in reply.tool_calls] == [False, True]
    assert (result.tool_call_id, result.function, result.text) == ("a", "shell", "shapes.py")
    assert (error.tool_call_id, last.text) == ("b", "")
    assert samples["wrong", 1].metadata["patch"] == "diff \ufffd"
    sample = samples[TASK, 1]
    assert sample.metadata["rewards"] == [0.0, 1.0]
    assert sample.model_usage["owner/model"].total_cost == 0.5
    assert sample.model_usage["owner/model"].input_tokens == 9


@pytest.mark.nightly
def test_inspect_logs_are_untrusted_and_large_runs_split(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = pytest.importorskip("inspect_ai.log", reason="needs the extra `inspect`")
    monkeypatch.setattr("coding_gym.evaluation.inspect_log.MAX_CHARS", 1)
    logs = [log.read_eval_log(path) for path in export(run, "inspect", tmp_path / "out")]
    assert [len(item.samples) for item in logs] == [1] * 8
    assert {item.eval.viewer.trust_content for item in logs} == {False}
    assert len({item.eval.eval_id for item in logs}) == 8
    assert [len(item.results.scores[0].metrics) for item in logs] == [1] * 6 + [0] * 2
