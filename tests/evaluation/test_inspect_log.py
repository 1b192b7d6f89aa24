"""``export --format inspect``: runs as logs of Inspect."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.errors import MissingDependencyError
from coding_gym.evaluation import export
from coding_gym.grade import Grade, GradeReason
from coding_gym.rollout import RunFolder
from coding_gym.trajectory import ModelCall, StopReason, Trajectory, Turn

HOSTILE = "<script>alert(1)</script> [x](javascript:alert(2)) \x1b]0;t\x07 \u202e \x00"
CONFIG = {
    "run_id": "run",
    "created_at": "2026-01-02T03:04:05+00:00",
    "agent": {"name": "chat", "model": "owner/model"},
    "tasks": {"source": "rows.jsonl", "task_ids": ["a", "b"]},
    "attempts": 2,
    "seed": 0,
    "episode": {"toolset": f"nano {HOSTILE} \ud800"},
    "versions": {"python": "3.11"},
}


def called(call_id: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "function": {"name": "shell", "arguments": arguments}}


GRADED = Trajectory(
    task_id="a",
    agent="chat",
    model="owner/model",
    seed=0,
    messages=(
        {"role": "system", "content": "Repair it."},
        {"role": "user", "content": f"{HOSTILE} \ud800"},
        {
            "role": "assistant",
            "content": HOSTILE,
            "reasoning_content": "Hm.",
            "tool_calls": [called("c1", '{"cmd": "ls"}'), called("c2", "[1")],
        },
        {"role": "tool", "tool_call_id": "c1", "content": f"{HOSTILE} \udcff"},
        {"role": "tool", "tool_call_id": "c2", "content": "no JSON"},
        {"role": "assistant", "content": "Done."},
    ),
    turns=(
        Turn(
            action=HOSTILE,
            calls=(ToolCall("shell", {"cmd": "ls"}, "c1"), ToolCall("shell", {}, "c2", "no JSON")),
            results=(
                ToolResult(f"{HOSTILE} \udcff", call_id="c1"),
                ToolResult("no JSON", ok=False, call_id="c2"),
            ),
            reward=0.25,
            reward_parts={"progress": 0.25},
            duration_s=2.0,
            model_call=ModelCall(
                prompt_tokens=9,
                completion_tokens=2,
                cached_tokens=4,
                cost=0.5,
                duration_s=3.0,
                finish_reason="tool_calls",
            ),
        ),
        Turn(action="Done.", reward=1.0),
    ),
    stop_reason=StopReason.SUBMITTED,
    patch="diff \udcff",
    grade=Grade(
        resolved=True, reason=GradeReason.RESOLVED, fail_to_pass={"test_hidden.py::test": "passed"}
    ),
    usage={"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 4},
    cost=0.5,
    started_at="2026-01-02T03:04:05+00:00",
    duration_s=7.5,
)
WRONG = replace(GRADED, attempt=1, grade=Grade(resolved=False, reason=GradeReason.TESTS_FAILED))
LOST = Trajectory(task_id="b", error=f"HTTP 503 {HOSTILE}", error_class="model")


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder.create(tmp_path / "run", CONFIG)
    with folder.writer() as writer:
        for trajectory in (GRADED, WRONG, LOST):
            writer.add(trajectory)
    return folder


def test_missing_package_names_its_extra(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "coding_gym.evaluation.inspect_log", raising=False)
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(MissingDependencyError, match="inspect"):
        export(run.path, "inspect", tmp_path / "out")


@pytest.fixture
def samples(run: RunFolder, tmp_path: Path) -> dict[tuple[str, int], Any]:
    log = pytest.importorskip("inspect_ai.log", reason="needs the extra `inspect`")
    (path,) = export(run.path, "inspect", tmp_path / "out")
    return {(sample.id, sample.epoch): sample for sample in log.read_eval_log(path).samples}


@pytest.mark.nightly
def test_inspect_reads_every_attempt_and_its_verdict(samples: dict[Any, Any]) -> None:
    assert samples.keys() == {("a", 1), ("a", 2), ("b", 1)}
    scores = {key: sample.scores for key, sample in samples.items()}
    assert scores["a", 1]["resolved"].value == 1.0
    assert scores["a", 2]["resolved"].value == 0.0
    assert scores["a", 2]["resolved"].explanation == GradeReason.TESTS_FAILED
    assert not scores["b", 1]
    assert samples["b", 1].error.message == LOST.error
    assert "test_hidden" not in samples["a", 1].model_dump_json()


@pytest.mark.nightly
def test_inspect_reads_messages_and_calls_unchanged(samples: dict[Any, Any]) -> None:
    _, user, reply, result, error, last = samples["a", 1].messages
    assert (user.role, user.text) == ("user", f"{HOSTILE} \ufffd")
    assert (reply.content[0].reasoning, reply.text) == ("Hm.", HOSTILE)
    assert [(call.id, call.arguments) for call in reply.tool_calls] == [
        ("c1", {"cmd": "ls"}),
        ("c2", {}),
    ]
    assert [bool(call.parse_error) for call in reply.tool_calls] == [False, True]
    assert (result.tool_call_id, result.function) == ("c1", "shell")
    assert result.text == f"{HOSTILE} \ufffd"
    assert (error.tool_call_id, last.text) == ("c2", "Done.")
    assert samples["a", 1].metadata["patch"] == "diff \ufffd"


@pytest.mark.nightly
def test_inspect_reads_rewards_and_usage_of_turns(samples: dict[Any, Any]) -> None:
    sample = samples["a", 1]
    kinds = ["model", "tool", "tool", "info", "model", "info", "score"]
    assert [event.event for event in sample.events] == kinds
    rewards = [event.data for event in sample.events if event.event == "info"]
    assert [reward["reward"] for reward in rewards] == [0.25, 1.0]
    assert rewards[0]["parts"] == {"progress": 0.25}
    assert [event.working_start for event in sample.events] == [0, 3, 3, 5, 5, 5, 5]
    usage = sample.events[0].output.usage
    assert (usage.input_tokens, usage.input_tokens_cache_read, usage.total_tokens) == (5, 4, 11)
    assert sample.model_usage["owner/model"].total_cost == 0.5
    assert len(sample.events[4].input) == 5


@pytest.mark.nightly
def test_inspect_logs_are_untrusted_and_large_runs_split(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = pytest.importorskip("inspect_ai.log", reason="needs the extra `inspect`")
    monkeypatch.setattr("coding_gym.evaluation.inspect_log.MAX_CHARS", 1)
    paths = export(run.path, "inspect", tmp_path / "out")
    logs = [log.read_eval_log(path) for path in paths]
    assert [len(one.samples) for one in logs] == [1, 1, 1]
    assert {one.eval.viewer.trust_content for one in logs} == {False}
    assert len({one.eval.eval_id for one in logs}) == 3
    assert [len(one.results.scores[0].metrics) for one in logs] == [1, 1, 0]
