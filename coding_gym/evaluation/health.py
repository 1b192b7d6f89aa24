"""The health of a run: how often replies, requests and machines went wrong, each with a remedy."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from coding_gym.json_record import JsonRecord
from coding_gym.tools.formats.table import FORMATS
from coding_gym.trajectory import Trajectory, Turn

# Marks that no prose has; a bare call in a thought cannot be told from a plan to make one.
_MARKS = re.compile(
    "|".join(one.opens for one in FORMATS.values() if re.match(r"<|\\\[", one.opens))
)
_REMEDIES = {
    "empty replies": "the chat template or the stop strings may be wrong: coding-gym check-model",
    "replies cut by length": "raise max_tokens of --sampling, or shorten thoughts",
    "calls that could not be read": "name the model's own format with --tool-format",
    "calls of unknown tools": "the model knows other tools: choose its --toolset",
    "calls in reasoning": "serve the model with the reasoning parser of its family",
    "prompts that rewrite history": "serve a template that keeps earlier turns",
    "lost sandboxes": "run fewer episodes at once (-c), or see coding-gym doctor",
    "lost grades": "grade with more memory or time, or validate the tasks",
    "errors of the agent": "see the traceback: coding-gym show RUN TASK",
    "lost requests": "see the server's log; --resume plays these attempts again",
}
_OF_ERRORS = {
    "sandbox": "lost sandboxes",
    "verifier": "lost grades",
    "agent": "errors of the agent",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom(JsonRecord):
    """Something that went wrong in a run.

    Attributes:
        name: What.
        count: How often.
        total: Of how many turns, calls or attempts.
        remedy: What helps.
    """

    name: str
    count: int
    total: int
    remedy: str


@dataclass(slots=True)
class Health:
    """Counts symptoms over the records of a run."""

    counts: Counter[str] = field(default_factory=Counter)
    num_attempts: int = 0
    num_turns: int = 0
    num_calls: int = 0

    def add(self, record: Trajectory) -> None:
        """Counts the symptoms of an attempt, with or without a verdict."""
        tools = {tool["function"]["name"] for tool in record.tools}
        self.num_attempts += 1
        self.num_turns += len(record.turns)
        self.num_calls += sum(len(turn.calls) for turn in record.turns)
        for turn in record.turns:
            self.counts.update(_symptoms(turn, tools))
        self.counts["calls in reasoning"] += sum(
            bool(_MARKS.search(str(message.get("reasoning_content") or "")))
            for message in record.messages
            if message["role"] == "assistant" and not message.get("tool_calls")
        )
        self.counts["prompts that rewrite history"] += record.num_prefix_breaks or 0
        if record.error_class:
            self.counts[_OF_ERRORS.get(record.error_class, "lost requests")] += 1

    def symptoms(self) -> tuple[Symptom, ...]:
        """Returns what was found, in a fixed order."""
        return tuple(
            Symptom(name=name, count=self.counts[name], total=self._total(name), remedy=remedy)
            for name, remedy in _REMEDIES.items()
            if self.counts[name]
        )

    def _total(self, name: str) -> int:
        if name.startswith(("lost", "errors")):
            return self.num_attempts
        is_of_calls = name in ("calls that could not be read", "calls of unknown tools")
        return self.num_calls if is_of_calls else self.num_turns


def _symptoms(turn: Turn, tools: set[str]) -> Iterator[str]:
    if not (turn.action.strip() or turn.calls):
        yield "empty replies"
    if turn.model_call is not None and turn.model_call.finish_reason == "length":
        yield "replies cut by length"
    for call in turn.calls:
        if call.error:
            yield "calls that could not be read"
        elif tools and call.name not in tools:
            yield "calls of unknown tools"
