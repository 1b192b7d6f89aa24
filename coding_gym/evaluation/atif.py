"""Converts episodes to ATIF, Harbor's trajectory format.

Source of the format: ``harbor/models/trajectories`` in Harbor 0.25.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from coding_gym import __version__
from coding_gym.trajectory import Message, Trajectory, Turn

SCHEMA_VERSION = "ATIF-v1.7"
"""The newest version that all readers accept; later versions add only audio."""
_COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens")


def to_atif(trajectory: Trajectory) -> dict[str, Any]:
    """Returns an episode as an ATIF trajectory, a JSON object.

    Each message becomes a step; tool results belong to the step of their call. ATIF has no field
    for a reward: ``final_metrics.extra`` contains the reward and the verdict, and ``extra`` the
    patch. The names of hidden tests and the token ids are excluded.

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
        metrics = {name: getattr(call, name) for name in _COUNTS} | {"cost_usd": call.cost}
        metrics["extra"] = {"finish_reason": call.finish_reason, "duration_s": call.duration_s}
    return _without_none(**fields, metrics=_without_none(**metrics) or None)


def _call(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a tool call of a reply; arguments that are not a JSON object become its ``extra``."""
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
        **{f"total_{name}": trajectory.usage.get(name) for name in _COUNTS},
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
