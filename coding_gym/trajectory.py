"""What happened in one episode, turn by turn, with the tokens as they were sampled."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.grade import Grade

Message = dict[str, Any]
"""One chat message in OpenAI's form: ``role``, ``content``, and ``tool_calls`` or
``tool_call_id`` where they apply."""


class StopReason(StrEnum):
    """Why an episode ended."""

    SUBMITTED = "submitted"  # the policy called submit (terminated)
    NO_TOOL_CALL = "no_tool_call"  # the toolset's own end: changed tree, no call (terminated)
    MAX_TURNS = "max_turns"  # truncated
    MAX_TOOL_CALLS = "max_tool_calls"  # truncated
    MAX_TOKENS = "max_tokens"  # truncated
    MAX_TIME = "max_time"  # truncated
    MAX_COST = "max_cost"  # truncated
    COLLAPSED = "collapsed"  # the same call over and over, warned of (truncated)
    FORMAT_ERRORS = "format_errors"  # too many replies in a row that could not be read (truncated)
    STOPPED = "stopped"  # the caller sent a Stop (truncated)
    SANDBOX_ERROR = "sandbox_error"  # our side failed (truncated, masked)
    GRADING_ERROR = "grading_error"  # our side failed (truncated, masked)

    @property
    def terminated(self) -> bool:
        """Whether the policy ended the episode; otherwise it was truncated."""
        return self in (StopReason.SUBMITTED, StopReason.NO_TOOL_CALL)

    @property
    def is_machinery(self) -> bool:
        """Whether our side is to blame, so that the sample should be masked."""
        return self in (StopReason.SANDBOX_ERROR, StopReason.GRADING_ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One action and what came of it.

    Attributes:
        action: The policy's text.
        token_ids: Ids of the action: as sampled, or an encoding of the text; none for a `Stop`.
        exact: Whether ``token_ids`` are what the policy sampled.
        logprobs: Log-probability per id (natural logarithm), or None.
        calls: The tool calls that were read from the action.
        results: Their results, in order; fewer than calls where the episode ended first.
        observation: The text that the policy saw next.
        reward: Reward of this step.
        reward_parts: What the reward is made of.
        duration_s: Wall time of the step in seconds.
    """

    action: str
    token_ids: tuple[int, ...] = ()
    exact: bool = False
    logprobs: tuple[float, ...] | None = None
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    observation: str = ""
    reward: float = 0.0
    reward_parts: Mapping[str, float] = field(default_factory=dict)
    duration_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Returns the turn as a JSON object."""
        data = {name: getattr(self, name) for name in self.__slots__}
        data["token_ids"] = list(self.token_ids)
        data["logprobs"] = None if self.logprobs is None else list(self.logprobs)
        data["calls"] = [c.to_json() for c in self.calls]
        data["results"] = [r.to_json() for r in self.results]
        data["reward_parts"] = dict(self.reward_parts)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Turn":
        """Rebuilds a turn from what `to_json` gave."""
        values = dict(data)
        values["token_ids"] = tuple(values["token_ids"])
        if values["logprobs"] is not None:
            values["logprobs"] = tuple(values["logprobs"])
        values["calls"] = tuple(ToolCall.from_json(c) for c in values["calls"])
        values["results"] = tuple(ToolResult.from_json(r) for r in values["results"])
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One whole episode.

    Attributes:
        task_id: The task.
        messages: The chat as the policy saw it, system prompt first.
        turns: The actions and their outcomes.
        stop_reason: Why it ended; None while it runs.
        patch: The change that was graded, a unified diff.
        grade: The verdict; None where there was none.
        toolset: Name of the toolset.
        tokenizer: Name of the tokenizer that ``token_ids`` belong to.
        error: What failed on our side, or "".
        settings: What else the episode was made with, JSON values; empty in records of versions
            that did not write it. `coding_gym.rollout.replay` needs it.
    """

    task_id: str
    messages: tuple[Message, ...] = ()
    turns: tuple[Turn, ...] = ()
    stop_reason: StopReason | None = None
    patch: str = ""
    grade: Grade | None = None
    toolset: str = ""
    tokenizer: str = ""
    error: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def resolved(self) -> bool:
        """Whether the episode was graded, and its patch passed."""
        return self.grade is not None and self.grade.resolved

    @property
    def total_reward(self) -> float:
        """Sum of the rewards of all turns."""
        return sum(turn.reward for turn in self.turns)

    def to_json(self) -> dict[str, Any]:
        """Returns the trajectory as a JSON object, one line of a JSONL file."""
        data = {name: getattr(self, name) for name in self.__slots__}
        data["messages"] = list(self.messages)
        data["settings"] = dict(self.settings)
        data["turns"] = [t.to_json() for t in self.turns]
        data["stop_reason"] = None if self.stop_reason is None else str(self.stop_reason)
        data["grade"] = None if self.grade is None else self.grade.to_json()
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Trajectory":
        """Rebuilds a trajectory from what `to_json` gave."""
        values = dict(data)
        values["messages"] = tuple(values["messages"])
        values["turns"] = tuple(Turn.from_json(t) for t in values["turns"])
        if values["stop_reason"] is not None:
            values["stop_reason"] = StopReason(values["stop_reason"])
        if values["grade"] is not None:
            values["grade"] = Grade.from_json(values["grade"])
        return cls(**values)
