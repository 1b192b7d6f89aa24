"""The example of a baseline without tools, against a scripted server."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from model_server import Answer, ChatServer, message

from coding_gym.rollout import RunFolder
from coding_gym.tasks import load_tasks

EXAMPLE = Path(__file__).parents[2] / "examples/direct_baseline.py"
(TASK,) = load_tasks("bundled", task_ids=["cronwise-working-days"])
PATH = "cronwise/expression.py"


def predict(reply: str, out: Path) -> tuple[str, dict[str, Any]]:
    """Returns the prediction that the example makes of a reply, and the request."""
    with ChatServer(lambda _: Answer(message(reply))) as server:
        options = ["--model", "tiny", "--base-url", server.base_url, "--task", TASK.task_id]
        subprocess.run([sys.executable, EXAMPLE, *options, "--out", out], check=True)
        (request,) = server.requests
    (line,) = out.read_text().splitlines()
    return json.loads(line)["model_patch"], request


@pytest.mark.slow
def test_patch_of_one_reply_is_graded(tmp_path: Path) -> None:
    reply = f"<think>```diff\n--- no\n```</think>\nThis:\n```diff\n{TASK.gold_patch}```\nDone."
    patch, request = predict(reply, tmp_path / "preds.jsonl")
    assert patch == TASK.gold_patch
    assert "tools" not in request
    prompt = request["messages"][1]["content"]
    assert prompt.startswith(TASK.problem_statement)
    assert f"\n{PATH}\n" in prompt
    assert "self.any_day and self.any_weekday" in prompt
    run("grade", tmp_path / "preds.jsonl")
    (record,) = RunFolder.open(tmp_path / "preds.graded").trajectories()
    assert (record.resolved, record.model) == (True, "tiny")


@pytest.mark.slow
def test_reply_without_patch_is_an_empty_prediction(tmp_path: Path) -> None:
    assert predict("I cannot say.", tmp_path / "preds.jsonl")[0] == ""
