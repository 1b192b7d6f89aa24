"""Runs in the formats of other tools."""

import json
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run

from coding_gym.errors import UnknownNameError
from coding_gym.evaluation import export

STEP = {"step_id", "source", "message", "timestamp"}
AGENT_STEP = STEP | {"reasoning_content", "tool_calls", "observation", "metrics"}
AGENT_STEP |= {"llm_call_count", "extra"}


@pytest.fixture
def run(tmp_path: Path, tiny_row: dict[str, Any]) -> Path:
    return make_run(tmp_path / "run", tiny_row)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_atif_keeps_tool_results_in_the_calling_step(run: Path, tmp_path: Path) -> None:
    paths = export(run, "atif", tmp_path / "out")
    assert len(paths) == 6
    (atif,) = lines(tmp_path / "out/shapes-area-0/agent/trajectory.json")
    assert atif["schema_version"] == "ATIF-v1.7"
    (trial,) = lines(tmp_path / "out/shapes-area-0/config.json")
    assert (trial["trial_name"], trial["agent"]["name"]) == ("shapes-area-0", "chat")
    assert [step["source"] for step in atif["steps"]] == ["system", "user", "agent", "agent"]
    assert [step["step_id"] for step in atif["steps"]] == [1, 2, 3, 4]
    for step in atif["steps"]:
        assert step.keys() <= (AGENT_STEP if step["source"] == "agent" else STEP)
    look = atif["steps"][2]
    assert [call["arguments"] for call in look["tool_calls"]] == [{"cmd": "ls"}, {}]
    assert look["tool_calls"][1]["extra"] == {"arguments_text": "{cmd"}
    ids = [result["source_call_id"] for result in look["observation"]["results"]]
    assert ids == ["a", "b"]
    verdict = atif["final_metrics"]["extra"]
    assert (verdict["reward"], verdict["challenge"]) == (1.0, "value 2 · structure 1")
    assert verdict["levels"] == {"value": 2, "structure": 1}
    assert atif["final_metrics"]["total_prompt_tokens"] == 9
    assert "total_completion_tokens" not in atif["final_metrics"]  # one of them is not known


def test_swebench_predictions_keep_patches_as_they_are(run: Path, tmp_path: Path) -> None:
    export(run, "swebench", tmp_path)
    predictions = {row["instance_id"]: row for row in lines(tmp_path / "predictions-1.jsonl")}
    assert predictions.keys() == {"shapes-area", "empty", "wrong"}
    assert predictions["wrong"]["model_patch"] == "diff \udcff"
    assert predictions["wrong"]["model_name_or_path"] == "owner/model"


def test_sft_rows_are_resolved(run: Path, tmp_path: Path) -> None:
    (path,) = export(run, "sft", tmp_path)
    row, other = lines(path)
    assert [(one["task_id"], one["attempt"]) for one in (row, other)] == [
        ("shapes-area", 0),
        ("shapes-area", 1),
    ]
    assert [message["role"] for message in row["messages"]][2:4] == ["assistant", "tool"]
    assert row["messages"][1]["content"] == "It adds. \ufffd"
    assert row["tools"][0]["function"]["name"] == "shell"


def test_unknown_formats_are_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="atiff"):
        export(run, "atiff", tmp_path)
