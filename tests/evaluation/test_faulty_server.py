"""All bundled tasks, four attempts each, against a server that does all that servers do wrong."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from model_server import Answer, ChatServer, message

from coding_gym.agents.chat import ChatAgent
from coding_gym.agents.model_client import OpenAIClient
from coding_gym.calls import ToolCall
from coding_gym.evaluation import evaluate, report
from coding_gym.rollout.runner import attempt_seed
from coding_gym.tasks import load_tasks
from coding_gym.tools import get_toolset
from coding_gym.tools.formats import render_calls

pytestmark = pytest.mark.slow

_FORMATS = ("hermes", "qwen3_coder", "llama3", "mistral", "harmony", "deepseek_v3", "kimi_k2")
_FORMATS += ("glm45", "minimax_m2", "lfm2")
_SCHEMAS = get_toolset("nano").schemas
_ERRORS = {"down": "model", "hangs": "timeout", "forbidden": "refused", "nonsense": "model"}
_FATES = ("busy", *_ERRORS, "ids", "malformed", *_FORMATS)


def fate_of(seed: int) -> str:
    return _FATES[seed % len(_FATES)]


class Script:
    """Answers each attempt by its fate, which follows from its seed."""

    def __init__(self) -> None:
        self.num_requests: Counter[int] = Counter()

    def __call__(self, body: dict[str, Any]) -> Answer:
        seed, fate = body["seed"], fate_of(body["seed"])
        self.num_requests[seed] += 1
        number = sum(each["role"] == "assistant" for each in body["messages"])
        calls: dict[str, Any] = {"submit": {}} if number else {"shell": {"cmd": "ls"}}
        if fate in _FORMATS:
            made = [ToolCall(name, arguments) for name, arguments in calls.items()]
            return Answer(message(render_calls(made, fate, _SCHEMAS)))
        if fate == "busy" and self.num_requests[seed] < 3:
            status = (429, 500)[self.num_requests[seed] % 2]
            return Answer({"error": {"message": "later"}}, status, headers={"retry-after-ms": "1"})
        reply = message(calls=calls, ids=([1] * (number + 1), [2]) if fate == "ids" else None)
        if fate == "malformed" and not number:
            function = reply["choices"][0]["message"]["tool_calls"][0]["function"]
            function["arguments"] = '{"cmd": "ls'
        return {
            "down": Answer({"error": {"message": "broken"}}, 503, headers={"retry-after-ms": "1"}),
            "hangs": Answer(reply, delay_s=3600),
            "forbidden": Answer({"error": {"message": "not you"}}, 403),
            "nonsense": Answer(b"<html>gateway</html>"),
        }.get(fate, Answer(reply))


def test_every_fault_of_a_server_ends_in_its_class(tmp_path: Path) -> None:
    with ChatServer(Script()) as server:
        client = OpenAIClient(server.base_url, timeout_s=20, max_retries=3)
        run = evaluate(tmp_path / "run", ChatAgent(client, "tiny"), attempts=4, concurrency=48)
    fates = {
        (task.task_id, attempt): fate_of(attempt_seed(0, task.task_id, attempt))
        for task in load_tasks("bundled")
        for attempt in range(4)
    }
    assert set(fates.values()) == set(_FATES)
    failed = {(one.task_id, one.attempt): one.error_class for one in run.errors()}
    assert failed == {key: _ERRORS[fate] for key, fate in fates.items() if fate in _ERRORS}
    for one in run.trajectories():
        fate = fates[one.task_id, one.attempt]
        assert (one.stop_reason, len(one.turns)) == ("submitted", 2), fate
        assert one.usage["num_retries"] == (2 if fate == "busy" else 0)
        assert bool(one.turns[0].calls[0].error) == (fate == "malformed")
        assert all(turn.exact == (fate == "ids") for turn in one.turns)
        assert one.num_prefix_breaks == (1 if fate == "ids" else None)
    made = report(run)
    assert made.overall.num_errors == len(failed)
    assert sum(made.error_classes.values()) == len(failed)
