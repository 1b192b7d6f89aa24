"""Episodes as ATIF trajectories, the format that Harbor and its readers share."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from coding_gym import __version__
from coding_gym.calls import ToolCall
from coding_gym.trajectory import Message, Trajectory, Turn

SCHEMA_VERSION = "ATIF-v1.7"
"""The version that all readers accept; later ones add audio only."""

_TOTALS = ("prompt_tokens", "completion_tokens", "cached_tokens")


def replies(trajectory: Trajectory) -> Iterator[tuple[int, Turn | None, list[int] | None]]:
    """Yields the place in ``messages`` of each reply of the policy, its turn, and its prompt's ids.

    The turn is None where another project's loop kept only its messages; the ids are those of the
    whole prompt, None where the server gave none. A turn that said nothing is left out.
    """
    turns = iter(trajectory.turns)
    history: list[int] = []
    for position, message in enumerate(trajectory.messages):
        if message["role"] != "assistant":
            continue
        turn = next(turns, None)
        call = turn.model_call if turn else None
        prompt_ids = None
        if turn and call and (call.prefix_length or call.prompt_ids):
            prompt_ids = [*history[: call.prefix_length], *call.prompt_ids]
            history = [*prompt_ids, *turn.token_ids]
        yield position, turn, prompt_ids


def to_atif(trajectory: Trajectory) -> dict[str, Any]:
    """Returns an episode as an ATIF trajectory, a JSON object.

    Every message is a step, but results of tools, which belong to the step that called them. ATIF
    has no field for a reward: ``final_metrics.extra`` holds it, with the verdict. The names of
    hidden tests are left out.

    Source of the form: ``harbor/models/trajectories`` of Harbor 0.25.

    Args:
        trajectory: The episode; it needs at least one message.
    """
    made = {position: (turn, ids) for position, turn, ids in replies(trajectory)}
    steps: list[dict[str, Any]] = []
    agent_step: dict[str, Any] = {}
    for position, message in enumerate(trajectory.messages):
        if message["role"] == "tool" and agent_step:
            observation = agent_step.setdefault("observation", {"results": []})
            observation["results"].append(_result(message, agent_step))
            continue
        source = "system" if message["role"] == "system" else "user"
        step = {"step_id": len(steps) + 1, "source": source, "message": message["content"]}
        if position in made:
            step |= _agent_fields(message, *made[position])
            agent_step = step
        steps.append(step)
    steps[0] |= _known(timestamp=trajectory.started_at or None)
    agent = _known(
        name=trajectory.agent or "unknown",
        version=__version__,
        model_name=trajectory.model or None,
        tool_definitions=list(trajectory.tools) or None,
    )
    extra = _known(task_id=trajectory.task_id, attempt=trajectory.attempt, seed=trajectory.seed)
    return _known(
        schema_version=SCHEMA_VERSION,
        session_id=trajectory.run_id or None,
        trajectory_id=f"{trajectory.run_id}/{trajectory.task_id}/{trajectory.attempt}",
        agent=agent,
        steps=steps,
        final_metrics=_final_metrics(trajectory, len(steps)),
        extra=extra,
    )


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _agent_fields(
    message: Message, turn: Turn | None, prompt_ids: list[int] | None
) -> dict[str, Any]:
    """Returns the fields that only steps of the agent have."""
    read = turn.calls if turn else ()
    written = enumerate(message.get("tool_calls") or ())
    calls = [_call(call, read[i] if i < len(read) else None) for i, call in written]
    return _known(
        source="agent",
        reasoning_content=message.get("reasoning_content"),
        tool_calls=calls or None,
        metrics=_metrics(turn, prompt_ids) or None if turn else None,
        llm_call_count=1 if turn and turn.model_call else None,
        extra={"reward": turn.reward, "duration_s": turn.duration_s} if turn else None,
    )


def call_arguments(written: Mapping[str, Any], read: ToolCall | None) -> dict[str, Any] | None:
    """Returns the arguments of a call in a message, None where the model wrote no JSON object.

    Args:
        written: The call in OpenAI's form.
        read: The same call as the episode has read it; None where none was read.
    """
    if read:
        return dict(read.arguments)
    with suppress(ValueError, RecursionError):
        arguments = json.loads(written["function"]["arguments"])
        return arguments if isinstance(arguments, dict) else None
    return None


def _call(written: Mapping[str, Any], read: ToolCall | None) -> dict[str, Any]:
    """Returns a call as ATIF has it: its arguments are an object, whatever the model wrote."""
    arguments = call_arguments(written, read)
    name, text = written["function"]["name"], written["function"]["arguments"]
    is_read = arguments is not None and not (read and read.error)
    return _known(
        tool_call_id=written["id"],
        function_name=name,
        arguments=arguments or {},
        extra=None if is_read else {"arguments_text": text},
    )


def _result(message: Message, step: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a result; it names its call where that is of this step, as readers check."""
    call_id, calls = message.get("tool_call_id"), step.get("tool_calls", ())
    is_of_step = any(call["tool_call_id"] == call_id for call in calls)
    return _known(content=message["content"], source_call_id=call_id if is_of_step else None)


def _metrics(turn: Turn, prompt_ids: list[int] | None) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    if call := turn.model_call:
        metrics = _known(
            prompt_tokens=call.prompt_tokens,
            completion_tokens=call.completion_tokens,
            cached_tokens=call.cached_tokens,
            cost_usd=call.cost,
            extra={"finish_reason": call.finish_reason, "duration_s": call.duration_s},
        )
    if turn.exact:
        metrics |= _known(
            prompt_token_ids=prompt_ids,
            completion_token_ids=list(turn.token_ids),
            logprobs=None if turn.logprobs is None else list(turn.logprobs),
        )
    return metrics


def _final_metrics(trajectory: Trajectory, num_steps: int) -> dict[str, Any]:
    grade = trajectory.grade
    return _known(
        total_steps=num_steps,
        **{f"total_{name}": trajectory.usage.get(name) for name in _TOTALS},
        total_cost_usd=trajectory.cost,
        extra=_known(
            reward=trajectory.total_reward,
            resolved=grade.resolved if grade else None,
            grade_reason=grade.reason if grade else None,
            challenge=(grade.challenge or None) if grade else None,
            levels=(dict(grade.levels) or None) if grade else None,
            stop_reason=trajectory.stop_reason,
            error_class=trajectory.error_class or None,
            num_prefix_breaks=trajectory.num_prefix_breaks,
        ),
    )
