"""A run's folder with a few attempts, as an evaluation leaves it behind."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.rollout.run_folder import RunFolder
from coding_gym.trajectory import ModelCall, StopReason, Trajectory, Turn

SCHEMA = {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}
TOOLS = (
    {"type": "function", "function": {"name": "shell", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "submit", "parameters": {"type": "object"}}},
)


def called(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def resolved_episode(task_id: str, patch: str) -> Trajectory:
    """Returns two turns; one call of the first cannot be read."""
    counts = ModelCall(
        prompt_tokens=3, completion_tokens=2, cached_tokens=1, finish_reason="tool_calls"
    )
    first = Turn(
        action="look",
        calls=(ToolCall("shell", {"cmd": "ls"}, "a"), ToolCall("shell", {}, "b", "no JSON")),
        results=(ToolResult("shapes.py", call_id="a"), ToolResult("no JSON", False, "b")),
        model_call=counts,
    )
    second = Turn(
        action="done",
        calls=(ToolCall("submit", {}, "a"),),
        results=(ToolResult("submitted", call_id="a", submitted=True),),
        reward=1.0,
        model_call=ModelCall(prompt_tokens=6),
    )
    messages: tuple[dict[str, Any], ...] = (
        {"role": "system", "content": "Repair it."},
        {"role": "user", "content": "It adds. \ud800"},
        {
            "role": "assistant",
            "content": "Look.",
            "reasoning_content": "Hm.",
            "tool_calls": [called("a", "shell", '{"cmd": "ls"}'), called("b", "shell", "{cmd")],
        },
        {"role": "tool", "tool_call_id": "a", "content": "shapes.py"},
        {"role": "tool", "tool_call_id": "b", "content": "no JSON"},
        {"role": "assistant", "content": "", "tool_calls": [called("a", "submit", "{}")]},
        {"role": "tool", "tool_call_id": "a", "content": "submitted"},
    )
    return Trajectory(
        task_id=task_id,
        usage={"model_calls": 2, "prompt_tokens": 9},
        agent="chat",
        model="owner/model",
        run_id="run",
        seed=0,
        messages=messages,
        tools=TOOLS,
        turns=(first, second),
        stop_reason=StopReason.SUBMITTED,
        patch=patch,
        grade=Grade(
            resolved=True,
            reason=GradeReason.RESOLVED,
            fail_to_pass={"test_hidden.py::test": TestStatus.PASSED},
            levels={"value": 2, "structure": 1},
            is_verified=True,
            plan="0123456789abcdef",
        ),
        started_at="2026-01-02T03:04:05+00:00",
        cost=0.5,
    )


def failed(episode: Trajectory, task_id: str, patch: str, reason: GradeReason) -> Trajectory:
    turn, *_ = episode.turns
    turns = (replace(turn, model_call=None),)
    grade = Grade(resolved=False, reason=reason)
    changes = {"task_id": task_id, "patch": patch, "grade": grade, "turns": turns}
    return replace(episode, **changes, messages=episode.messages[:5])


def run_config(**changes: Any) -> dict[str, Any]:
    """Returns the ``config.json`` of a run."""
    config = {
        "run_id": "run",
        "created_at": "2026-01-02T03:04:05+00:00",
        "agent": {"name": "chat", "model": "owner/model"},
        "seed": 0,
        "episode": {},
        "versions": {"coding-gym": "0.1.0"},
    }
    return config | changes


def make_run(path: Path, row: dict[str, Any]) -> Path:
    """Writes two attempts of four tasks: one is resolved, two fail, one ends with an error.

    Args:
        path: The folder.
        row: A task's row; its gold patch resolves the task.
    """
    good = resolved_episode(row["instance_id"], row["patch"])
    tasks = {"source": "rows", "task_ids": [good.task_id, "empty", "wrong", "lost"]}
    with RunFolder.create(path, run_config(tasks=tasks, attempts=2)).writer() as writer:
        for attempt in range(2):
            for episode in (
                good,
                failed(good, "empty", "", GradeReason.EMPTY_PATCH),
                failed(good, "wrong", "diff \udcff", GradeReason.TESTS_FAILED),
            ):
                writer.add(replace(episode, attempt=attempt))
            lost = Trajectory(task_id="lost", attempt=attempt, error="x", error_class="model")
            writer.add(lost)
    return path
