"""Converts episodes to and from ATIF, Harbor's trajectory format, and imports ATIF as a run.

Source of the format: ``harbor/models/trajectories`` in Harbor 0.25.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from coding_gym import __version__
from coding_gym.calls import TOKEN_COUNTS, ModelCall, ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.run_folder import RunFolder
from coding_gym.trajectory import Message, StopReason, Trajectory, Turn

SCHEMA_VERSION = "ATIF-v1.7"
"""The newest version that all readers accept; later versions add only audio."""
_MALFORMED = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Exceptions that reading a JSON object raises if a field is missing or has the wrong type."""


def to_atif(trajectory: Trajectory) -> dict[str, Any]:
    """Returns an episode as an ATIF trajectory, a JSON object.

    Tool results become part of the agent's step before them; all other messages become steps. ATIF
    has no field for a reward: ``final_metrics.extra`` contains the reward and the verdict, and
    ``extra`` the patch. The names of hidden tests and the token ids are excluded.

    Args:
        trajectory: An episode with at least one message.
    """
    steps: list[dict[str, Any]] = []
    turns = iter(trajectory.turns)
    for message in trajectory.messages:
        if message["role"] == "tool" and steps and steps[-1]["source"] == "agent":
            results = steps[-1].setdefault("observation", {"results": []})["results"]
            step_call_ids = [call["tool_call_id"] for call in steps[-1].get("tool_calls", ())]
            call_id = message.get("tool_call_id")
            # Readers reject a result whose call is in another step.
            source_call_id = call_id if call_id in step_call_ids else None
            results.append(_without_none(content=message["content"], source_call_id=source_call_id))
            continue
        source = "system" if message["role"] == "system" else "user"
        step = {"step_id": len(steps) + 1, "source": source, "message": message["content"]}
        if message["role"] == "assistant":
            step |= _agent_fields(message, next(turns, None))
        steps.append(step)
    steps[0] |= _without_none(timestamp=trajectory.started_at or None)
    return _without_none(
        schema_version=SCHEMA_VERSION,
        session_id=trajectory.run_id or None,
        trajectory_id=f"{trajectory.run_id}/{trajectory.task_id}/{trajectory.attempt}",
        agent=_without_none(
            name=trajectory.agent or "unknown",
            version=__version__,
            model_name=trajectory.model or None,
            tool_definitions=list(trajectory.tools) or None,
        ),
        steps=steps,
        final_metrics=_final_metrics(trajectory, len(steps)),
        extra={name: getattr(trajectory, name) for name in ("task_id", "seed", "patch")},
    )


def _without_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _agent_fields(message: Message, turn: Turn | None) -> dict[str, Any]:
    """Returns the fields of an agent's step; ``turn`` is None if the episode recorded no turn."""
    calls = [_call(entry) for entry in message.get("tool_calls") or ()]
    reasoning = message.get("reasoning_content")
    fields = _without_none(source="agent", reasoning_content=reasoning, tool_calls=calls or None)
    if turn is None:
        return fields
    fields["extra"] = {"reward": turn.reward, "duration_s": turn.duration_s}
    metrics: dict[str, Any] = {}
    if call := turn.model_call:
        fields["llm_call_count"] = 1
        metrics = {name: getattr(call, name) for name in TOKEN_COUNTS} | {"cost_usd": call.cost}
        metrics["extra"] = {"finish_reason": call.finish_reason, "duration_s": call.duration_s}
    return _without_none(**fields, metrics=_without_none(**metrics) or None)


def _call(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a reply's tool call in ATIF; ``extra`` has arguments that are not a JSON object."""
    text, arguments = entry["function"]["arguments"], None
    with suppress(ValueError, RecursionError):
        arguments = json.loads(text, parse_constant=str)  # JSON has no NaN
    is_object = isinstance(arguments, dict)
    return _without_none(
        tool_call_id=entry["id"],
        function_name=entry["function"]["name"],
        arguments=arguments if is_object else {},
        extra=None if is_object else {"arguments_text": text},
    )


def _final_metrics(trajectory: Trajectory, num_steps: int) -> dict[str, Any]:
    grade = trajectory.grade
    return _without_none(
        total_steps=num_steps,
        **{f"total_{name}": trajectory.usage.get(name) for name in TOKEN_COUNTS},
        total_cost_usd=trajectory.cost,
        extra=_without_none(
            reward=trajectory.total_reward,
            resolved=grade and grade.resolved,
            grade_reason=grade and grade.reason,
            challenge=(grade and grade.challenge) or None,
            levels=dict(grade.levels) if grade and grade.levels else None,
            stop_reason=trajectory.stop_reason,
            error_class=trajectory.error_class or None,
            num_prefix_breaks=trajectory.num_prefix_breaks,
        ),
    )


def import_atif(paths: Iterable[Path], out: Path, tasks: str = "bundled") -> RunFolder:
    """Writes ATIF trajectories as a new run that can be viewed, regraded or exported.

    The task of a trajectory is ``extra.task_id``, else the task in the ``config.json`` of its
    Harbor trial, else the name of the trial's folder. ATIF has no field for the patch:
    ``coding-gym export`` writes the patch to ``extra.patch``, and this function reads it there.

    Args:
        paths: Files, or folders that contain ``trajectory.json`` at any depth.
        out: The new run folder.
        tasks: The task source, as for `coding_gym.load_tasks`.

    Raises:
        InvalidArgumentError: A file is not an ATIF trajectory, ``paths`` contain no file, or
            ``out`` is not empty.
    """
    num_attempts = Counter[str]()
    records = []
    for path in paths:
        for file in sorted(path.rglob("trajectory.json")) if path.is_dir() else [path]:
            record = _read(file)
            records.append(replace(record, attempt=num_attempts[record.task_id]))
            num_attempts[record.task_id] += 1
    if not records:
        raise InvalidArgumentError(
            "no ATIF trajectory found; name ATIF files, or folders that contain trajectory.json"
        )
    config = {
        "agent": {"name": records[0].agent, "model": records[0].model},
        "tasks": {"source": tasks, "task_ids": sorted(num_attempts)},
        "attempts": max(num_attempts.values()),
        "seed": 0,
        "episode": {},
        "versions": {"coding-gym": __version__},
    }
    folder = RunFolder.create(out, config)
    with folder.writer() as writer:
        for record in records:
            writer.add(record)
    return folder


def _read(file: Path) -> Trajectory:
    try:
        record = from_atif(json.loads(file.read_bytes()))
        record = Trajectory.from_json(record.to_json())  # invalid values raise here
    except (OSError, *_MALFORMED) as problem:
        raise InvalidArgumentError(f"{file} is not an ATIF trajectory: {problem!r}") from None
    return record if record.task_id else replace(record, task_id=_task_of_trial(file))


def _task_of_trial(file: Path) -> str:
    """Returns the task id of the Harbor trial that contains a trajectory file."""
    trial = file.parent.parent if file.parent.name == "agent" else file.parent
    try:
        task = json.loads((trial / "config.json").read_bytes())["task"]
        return PurePath(task.get("path") or task["name"]).name
    except (OSError, *_MALFORMED):
        return trial.name


def from_atif(value: Mapping[str, Any]) -> Trajectory:
    """Converts an ATIF trajectory, a JSON object, to an episode without a grade.

    Steps of the agent become turns. Token ids, rewards and verdicts are ignored. A malformed
    object raises one of `_MALFORMED`.
    """
    agent, steps = value["agent"], value["steps"]
    extra = {**(value.get("extra") or {})}
    metrics = value.get("final_metrics") or {}
    reason = (metrics.get("extra") or {}).get("stop_reason")
    messages: list[Message] = []
    turns = []
    for step in steps:
        step_messages = [*_messages(step)]
        messages += step_messages
        if step["source"] == "agent":
            turns.append(_turn(step, *step_messages))
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


def _messages(step: Mapping[str, Any]) -> Iterator[Message]:
    """Yields the chat messages of a step: its text, and the results of its calls."""
    role = {"agent": "assistant", "system": "system"}.get(step["source"], "user")
    message: Message = {"role": role, "content": _text(step.get("message"))}
    if reasoning := step.get("reasoning_content"):
        message["reasoning_content"] = str(reasoning)
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
    yield message
    for result in (step.get("observation") or {}).get("results") or ():
        call_id = result.get("source_call_id")
        header = {"role": "tool", "tool_call_id": call_id} if call_id else {"role": "user"}
        yield {**header, "content": _text(result.get("content"))}


def _turn(step: Mapping[str, Any], reply: Message, *results: Message) -> Turn:
    metrics = step.get("metrics") or {}
    counts: dict[str, Any] = {name: metrics.get(name) for name in TOKEN_COUNTS}
    return Turn(
        action=reply["content"],
        carries_calls=True,
        calls=tuple(
            ToolCall(call["function_name"], call["arguments"], call["tool_call_id"])
            for call in step.get("tool_calls") or ()
        ),
        results=tuple(
            ToolResult(message["content"], None, message["tool_call_id"])
            for message in results
            if message["role"] == "tool"  # results without a call id have the role "user"
        ),
        observation="\n".join(message["content"] for message in results),
        model_call=ModelCall(**counts, cost=metrics.get("cost_usd")),
    )


def _text(content: Any) -> str:
    """Returns a message's content as text; a part without text becomes its type in brackets."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or f"[{part['type']}]") for part in content)
    return "" if content is None else str(content)
