"""The example of a baseline without tools, against a scripted server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from episodes import run_command
from model_server import Answer, ChatServer, message

from coding_gym.rollout import RunFolder
from coding_gym.tasks import load_tasks

(TASK,) = load_tasks("bundled", task_ids=["cronwise-working-days"])
PATH = "cronwise/expression.py"


@pytest.fixture
def predict(run_example: Callable[..., list[str]], tmp_path: Path) -> Callable[[str], Any]:
    """Returns the prediction that the example makes of a reply, and the request."""

    def made(reply: str) -> tuple[str, dict[str, Any]]:
        out = tmp_path / "preds.jsonl"
        with ChatServer(lambda _: Answer(message(reply))) as server:
            options = ["--model", "tiny", "--base-url", server.base_url, "--task", TASK.task_id]
            run_example("direct_baseline.py", *options, "--out", str(out))
            (request,) = server.requests
        (line,) = out.read_text().splitlines()
        return json.loads(line)["model_patch"], request

    return made


@pytest.mark.slow
def test_patch_of_one_reply_is_graded(predict: Any, tmp_path: Path) -> None:
    reply = f"<think>```diff\n--- no\n```</think>\nThis:\n```diff\n{TASK.gold_patch}```\nDone."
    patch, request = predict(reply)
    assert patch == TASK.gold_patch
    assert "tools" not in request
    prompt = request["messages"][1]["content"]
    assert prompt.startswith(TASK.problem_statement)
    assert f"\n{PATH}\n" in prompt
    assert "self.any_day and self.any_weekday" in prompt
    run_command("grade", tmp_path / "preds.jsonl")
    (record,) = RunFolder.open(tmp_path / "preds.graded").trajectories()
    assert (record.resolved, record.model) == (True, "tiny")


@pytest.mark.slow
def test_reply_without_patch_is_an_empty_prediction(predict: Any) -> None:
    assert predict("I cannot say.")[0] == ""
