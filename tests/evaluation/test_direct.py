"""Direct generation against a scripted server: one request, one patch, no tools."""

from pathlib import Path
from typing import Any

import pytest
from model_server import Answer, ChatServer, message

from coding_gym.agents.players import get_player
from coding_gym.evaluation.evaluate import evaluate
from coding_gym.tasks import load_tasks
from coding_gym.trajectory import Trajectory

(TASK,) = load_tasks("bundled", task_ids=["cronwise-working-days"])
PATH = "cronwise/expression.py"
ENVELOPE = f"""\
*** Begin Patch
*** Update File: {PATH}
-        if self.any_day and self.any_weekday:
+        if self.any_day or self.any_weekday:
*** End Patch
"""


def played(reply: str, out: Path) -> tuple[Trajectory, list[dict[str, Any]]]:
    with ChatServer(lambda _: Answer(message(reply))) as server:
        agent = get_player("direct", model="tiny", base_url=server.base_url, max_retries=0)
        (record,) = evaluate(agent, out, tasks=[TASK]).trajectories()
        return record, server.requests


@pytest.mark.parametrize(
    "reply",
    [
        f"The day is wrong.\n```diff\n{TASK.gold_patch}```\nDone.",
        f"<think>\n```diff\nnot this\n```\n</think>\n{TASK.gold_patch}",
        f"```diff\n{ENVELOPE}```\n",
        f"This: {PATH}\n{ENVELOPE}",
    ],
)
def test_patch_in_the_reply_is_applied_and_graded(reply: str, tmp_path: Path) -> None:
    record, _ = played(reply, tmp_path / "run")
    assert record.resolved
    assert record.usage["model_calls"] == 1


def test_request_has_issue_and_files_but_no_tools(tmp_path: Path) -> None:
    record, (request,) = played("nothing", tmp_path / "run")
    assert "tools" not in request
    prompt = request["messages"][1]["content"]
    assert prompt.startswith(TASK.problem_statement)
    assert f"\n{PATH}\n" in prompt
    assert "self.any_day and self.any_weekday" in prompt
    assert "self.any_day or self.any_weekday" not in prompt
    assert list(record.messages) == [
        *request["messages"],
        {"role": "assistant", "content": "nothing"},
    ]


@pytest.mark.parametrize(
    "reply",
    [
        "I cannot say.",
        ENVELOPE.replace("any_day and", "no such text and"),
        TASK.gold_patch.replace("self.any_day and", "no such text and"),
        f"{TASK.gold_patch}--- a/absent.py\n+++ b/absent.py\n@@ -1 +1 @@\n-a\n+b\n",
    ],
)
def test_unusable_reply_is_an_unresolved_attempt(reply: str, tmp_path: Path) -> None:
    record, _ = played(reply, tmp_path / "run")
    assert (record.error_class, record.patch, record.resolved) == ("", "", False)
    assert record.grade is not None
    assert record.stop_reason == "stopped"


def test_files_stay_within_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coding_gym.agents.direct.MAX_FILE_CHARS", 500)
    _, (request,) = played("nothing", tmp_path / "run")
    assert len(request["messages"][1]["content"]) < len(TASK.problem_statement) + 700
