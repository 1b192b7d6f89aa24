"""Counts the failures of replies, requests and sandboxes in a run, and suggests remedies."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from coding_gym.json_record import JsonRecord
from coding_gym.tools.formats.table import FORMATS
from coding_gym.trajectory import Trajectory, Turn

# Opening marks of calls, for formats whose marks do not occur in prose or in plans of calls.
_MARKS = re.compile(
    "|".join(row.opens for row in FORMATS.values() if re.match(r"(?:\(\?:)?(?:<|\\\[)", row.opens))
)
_REMEDIES = {
    "turns": {
        "empty replies": "check the chat template and the stop strings: coding-gym check-model",
        "replies cut by length": "raise max_tokens of --sampling, or shorten the reasoning",
        "calls in reasoning": "serve the model with the reasoning parser of its family",
        "prompts that rewrite history": "serve a template that keeps earlier turns",
    },
    "calls": {
        "calls that could not be read": "set --tool-format to the format that the model writes",
        "calls of unknown tools": "set --toolset to the tools that the model was trained with",
    },
    "attempts": {
        "attempts without a tool call": (
            "enable the server's parser of calls; without --harness, --tool-format can replace it"
        ),
        "sandbox errors": "read coding-gym show RUN TASK; if busy, run fewer episodes at once (-c)",
        "grading errors": "grade with more memory or time, or run coding-gym validate",
        "errors of the agent": "read the error: coding-gym show RUN TASK",
        "harnesses that ended with an error": "read the output: coding-gym show RUN TASK",
        "request errors": "start the server or read its log; --resume repeats these attempts",
    },
}
"""The remedy of each symptom, by the unit in which the symptom is counted."""
_ERROR_SYMPTOMS = {
    "sandbox": "sandbox errors",
    "verifier": "grading errors",
    "agent": "errors of the agent",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom(JsonRecord):
    """A kind of failure in a run.

    Attributes:
        name: The kind, such as "empty replies".
        count: Number of failures of this kind.
        total: Number of all turns, calls or attempts of the run.
        remedy: A change that the user can make.
    """

    name: str
    count: int
    total: int
    remedy: str


def symptoms(counts: Counter[str]) -> tuple[Symptom, ...]:
    """Returns the symptoms that occur in a sum of `health_counts`, in a fixed order."""
    return tuple(
        Symptom(name=name, count=counts[name], total=counts[unit], remedy=remedy)
        for unit, remedies in _REMEDIES.items()
        for name, remedy in remedies.items()
        if counts[name]
    )


def health_counts(record: Trajectory) -> Counter[str]:
    """Counts an attempt's failures by symptom, its turns and its calls; "attempts" is 1."""
    tools = {tool["function"]["name"] for tool in record.tools}
    counts = Counter(name for turn in record.turns for name in _turn_symptoms(turn, tools))
    counts["attempts"] = 1
    counts["turns"] = len(record.turns)
    counts["calls"] = sum(len(turn.calls) for turn in record.turns)
    counts["calls in reasoning"] = sum(
        bool(_MARKS.search(str(message.get("reasoning_content") or "")))
        for message in record.messages
        if message["role"] == "assistant" and not message.get("tool_calls")
    )
    counts["prompts that rewrite history"] = record.num_prefix_breaks or 0
    has_model = any(turn.model_call for turn in record.turns)
    if has_model and record.tools and not any(turn.calls for turn in record.turns):
        counts["attempts without a tool call"] = 1
    if record.error_class:
        counts[_ERROR_SYMPTOMS.get(record.error_class, "request errors")] = 1
    elif record.error:
        counts["harnesses that ended with an error"] = 1
    return counts


def _turn_symptoms(turn: Turn, tools: set[str]) -> Iterator[str]:
    if not (turn.action.strip() or turn.calls):
        yield "empty replies"
    if turn.model_call is not None and turn.model_call.finish_reason == "length":
        yield "replies cut by length"
    for call in turn.calls:
        if call.error:
            yield "calls that could not be read"
        elif tools and call.name not in tools:
            yield "calls of unknown tools"
