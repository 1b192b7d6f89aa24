"""Imports ATIF trajectories as a run, to view, regrade and export."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from coding_gym import __version__
from coding_gym.calls import ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.rollout import RunFolder
from coding_gym.trajectory import Message, ModelCall, StopReason, Trajectory, Turn

_MALFORMED = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of reading a JSON object of another form."""


def import_atif(
    paths: Iterable[str | Path], out: str | Path, tasks: str | Mapping[str, Any] = "bundled"
) -> RunFolder:
    """Writes ATIF trajectories as a new run and returns the run.

    The task of a trajectory is ``extra.task_id``, else the task in the ``config.json`` of its
    Harbor trial, else the name of the trial's folder. ATIF has no field for the patch;
    ``coding-gym export`` writes it to ``extra.patch``, and ``coding-gym regrade`` can grade it.

    Args:
        paths: Files, or folders that contain ``trajectory.json`` at any depth.
        out: A new folder.
        tasks: The source of the tasks, as for `coding_gym.load_tasks`.

    Raises:
        InvalidArgumentError: A file is not an ATIF trajectory, there is no file, or ``out`` is not
            empty.
    """
    files = [file for path in map(Path, paths) for file in _files(path)]
    if not files:
        raise InvalidArgumentError(
            "no ATIF trajectory found; name files, or folders that contain them"
        )
    numbers = Counter[str]()
    records = []
    for file in files:
        record = _read(file, numbers)
        numbers[record.task_id] += 1
        records.append(record)
    source = {"source": tasks} if isinstance(tasks, str) else dict(tasks)
    config = {
        "agent": {"name": records[0].agent, "model": records[0].model},
        "tasks": {**source, "task_ids": sorted(numbers)},
        "attempts": max(numbers.values()),
        "seed": 0,
        "episode": {},
        "versions": {"coding-gym": __version__},
    }
    folder = RunFolder.create(out, config)
    with folder.writer() as writer:
        for record in records:
            writer.add(record)
    return folder


def from_atif(value: Mapping[str, Any]) -> Trajectory:
    """Converts an ATIF trajectory, a JSON object, to an episode without a grade.

    Steps of the agent become turns. Token ids, rewards and verdicts are ignored; the patch can be
    graded. A malformed object raises one of `_MALFORMED`.
    """
    agent, steps = value["agent"], value["steps"]
    extra = {**(value.get("extra") or {})}
    metrics = value.get("final_metrics") or {}
    reason = (metrics.get("extra") or {}).get("stop_reason")
    messages: list[Message] = []
    turns = []
    for step in steps:
        messages += (read := _messages(step))
        if step["source"] == "agent":
            turns.append(_turn(step, read))
    return Trajectory(
        task_id=str(extra.get("task_id", "")),
        agent=str(agent["name"]),
        model=str(agent.get("model_name") or ""),
        messages=tuple(messages),
        tools=tuple(agent.get("tool_definitions") or ()),
        turns=tuple(turns),
        stop_reason=StopReason(reason) if reason in list(StopReason) else None,
        patch=str(extra.get("patch", "")),
        started_at=str(steps[0].get("timestamp") or ""),
    )


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("trajectory.json")) if path.is_dir() else [path]


def _read(file: Path, numbers: Mapping[str, int]) -> Trajectory:
    try:
        record = from_atif(json.loads(file.read_bytes()))
        record = Trajectory.from_json(record.to_json())  # fails now, not in later commands
    except (OSError, *_MALFORMED) as problem:
        raise InvalidArgumentError(f"{file} is not an ATIF trajectory: {problem!r}") from None
    task_id = record.task_id or _task_of_trial(file)
    return replace(record, task_id=task_id, attempt=numbers.get(task_id, 0))


def _task_of_trial(file: Path) -> str:
    """Returns the task of a Harbor trial, whose folder ``agent`` contains the trajectory."""
    trial = file.parent.parent if file.parent.name == "agent" else file.parent
    try:
        task = json.loads((trial / "config.json").read_bytes())["task"]
        return PurePath(task.get("path") or task["name"]).name
    except (OSError, *_MALFORMED):
        return trial.name


def _messages(step: Mapping[str, Any]) -> list[Message]:
    """Returns the chat messages of a step: its text, and the results of its calls."""
    role = {"agent": "assistant", "system": "system"}.get(step["source"], "user")
    message: Message = {"role": role, "content": _text(step.get("message"))}
    if thought := step.get("reasoning_content"):
        message["reasoning_content"] = str(thought)
    if calls := step.get("tool_calls"):
        message["tool_calls"] = [
            {
                "id": call["tool_call_id"],
                "type": "function",
                "function": {
                    "name": call["function_name"],
                    "arguments": json.dumps(call["arguments"]),
                },
            }
            for call in calls
        ]
    results: list[Message] = []
    for result in (step.get("observation") or {}).get("results") or ():
        content = _text(result.get("content"))
        if call_id := result.get("source_call_id"):
            results.append({"role": "tool", "content": content, "tool_call_id": call_id})
        else:
            results.append({"role": "user", "content": content})
    return [message, *results]


def _turn(step: Mapping[str, Any], messages: list[Message]) -> Turn:
    reply, *results = messages
    metrics = step.get("metrics") or {}
    return Turn(
        action=reply["content"],
        carries_calls=True,
        calls=tuple(
            ToolCall(call["function_name"], call["arguments"], call["tool_call_id"])
            for call in step.get("tool_calls") or ()
        ),
        results=tuple(
            ToolResult(item["content"], None, item["tool_call_id"])
            for item in results
            if item["role"] == "tool"  # notices have the role "user"
        ),
        observation="\n".join(item["content"] for item in results),
        model_call=ModelCall(
            prompt_tokens=metrics.get("prompt_tokens"),
            completion_tokens=metrics.get("completion_tokens"),
            cached_tokens=metrics.get("cached_tokens"),
            cost=metrics.get("cost_usd"),
        ),
    )


def _text(content: Any) -> str:
    """Returns the text of a message; in a list of parts, ``[type]`` replaces parts without text."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or f"[{part['type']}]") for part in content)
    return "" if content is None else str(content)
