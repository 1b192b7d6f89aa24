"""The record of one episode, with the sampled tokens of every turn."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Self

from coding_gym.action import Completion
from coding_gym.calls import ModelCall, ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.grade import Grade
from coding_gym.json_record import JsonRecord

SCHEMA_VERSION = 1

ERROR_CLASSES = ("model", "agent", "sandbox", "verifier", "timeout", "refused")
"""The classes of failures that end an episode without a verdict.

``model``: no usable reply. ``agent``: an exception in the agent's code. ``sandbox``: a sandbox or
its template. ``verifier``: the grader. ``timeout``: the server did not reply in time. ``refused``:
the server rejects the request (key, parameters, content policy); a retry does not help.
"""

LASTING_ERROR_CLASSES = ("model", "agent", "refused")
"""The `ERROR_CLASSES` whose cause affects all episodes, so trainers stop."""

Message = dict[str, Any]
"""One chat message in OpenAI's form: ``role``, ``content``, and optionally ``tool_calls`` or
``tool_call_id``."""


class StopReason(StrEnum):
    """The reason why an episode ended."""

    SUBMITTED = "submitted"  # the policy called submit (terminated)
    NO_TOOL_CALL = "no_tool_call"  # toolset nano: changed tree, reply without a call (terminated)
    MAX_TURNS = "max_turns"  # limit of turns (truncated)
    MAX_TOOL_CALLS = "max_tool_calls"  # limit of tool calls (truncated)
    MAX_TOKENS = "max_tokens"  # limit of tokens (truncated)
    MAX_TIME = "max_time"  # limit of seconds (truncated)
    MAX_COST = "max_cost"  # limit of cost (truncated)
    COLLAPSED = "collapsed"  # the same call repeated in spite of a warning (truncated)
    FORMAT_ERRORS = "format_errors"  # too many consecutive unreadable replies (truncated)
    CONTEXT = "context"  # the prompt has more tokens than the model accepts (truncated)
    STOPPED = "stopped"  # the caller sent a Stop (truncated)
    SANDBOX_ERROR = "sandbox_error"  # infrastructure failure (truncated, masked)
    GRADING_ERROR = "grading_error"  # infrastructure failure (truncated, masked)

    @property
    def terminated(self) -> bool:
        """Whether the policy ended the episode; otherwise it was truncated."""
        return self in (StopReason.SUBMITTED, StopReason.NO_TOOL_CALL)

    @property
    def error_class(self) -> str:
        """The class of an infrastructure failure, one of `ERROR_CLASSES`; "" for other reasons."""
        classes = {StopReason.SANDBOX_ERROR: "sandbox", StopReason.GRADING_ERROR: "verifier"}
        return classes.get(self, "")

    @property
    def is_infrastructure_failure(self) -> bool:
        """Whether an infrastructure failure ended the episode, whose sample should be masked."""
        return bool(self.error_class)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(JsonRecord):
    """One action and its outcome.

    Attributes:
        action: The policy's text.
        messages: The chat messages of the action and its results; empty in turns that were read
            from a file, because `Trajectory.messages` has all messages.
        token_ids: Ids of the action: the sampled ids, or an encoding of the text; none for a
            `Stop`.
        exact: Whether ``token_ids`` are the sampled ids.
        logprobs: Log-probability per id (natural logarithm), or None.
        carries_calls: Whether a server or trainer had parsed the calls; ``action`` is then the text
            without the calls.
        is_cut: Whether a length limit truncated the action.
        weight_version: Version of the weights that sampled the action, or None.
        calls: The tool calls of the action.
        results: Results of the calls, in order; fewer than calls if a call ended the episode.
        observation: The new text for the policy after the action.
        reward: Reward of this step.
        reward_parts: The parts that sum to the reward, by name.
        duration_s: Wall time of the step in seconds.
        model_call: The request to the model that returned the action; None without a model.
    """

    action: str
    messages: tuple[Message, ...] = field(default=(), compare=False)
    token_ids: tuple[int, ...] = ()
    exact: bool = False
    logprobs: tuple[float, ...] | None = None
    carries_calls: bool = False
    is_cut: bool = False
    weight_version: str | None = None
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    observation: str = ""
    reward: float = 0.0
    reward_parts: Mapping[str, float] = field(default_factory=dict)
    duration_s: float = 0.0
    model_call: ModelCall | None = None

    @classmethod
    def of(cls, reply: Completion, **attributes: Any) -> Self:
        """Returns the turn of a reply; ``attributes`` take precedence over those of the reply."""
        reply_attributes: dict[str, Any] = {
            "action": str(reply),
            "token_ids": reply.token_ids,
            "exact": reply.exact,
            "logprobs": reply.logprobs,
            "carries_calls": reply.calls is not None,
            "calls": reply.calls or (),
            "is_cut": reply.is_cut,
            "weight_version": reply.weight_version,
            "model_call": reply.model_call,
        }
        return cls(**reply_attributes | attributes)

    def completion(self, reasoning: str = "") -> Completion:
        """Returns the reply of the turn, to play it again.

        Args:
            reasoning: The reasoning; it is in the message of the reply and not in the turn.
        """
        return Completion(
            self.action,
            token_ids=self.token_ids if self.exact else (),
            logprobs=self.logprobs if self.exact else None,
            calls=self.calls if self.carries_calls else None,
            weight_version=self.weight_version,
            reasoning=reasoning if self.carries_calls else "",
            is_cut=self.is_cut,
        )

    @property
    def has_prompt_ids(self) -> bool:
        """Whether the sampled ids and the ids of their prompt are recorded."""
        call = self.model_call
        return self.exact and call is not None and bool(call.prefix_length or call.prompt_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory(JsonRecord):
    """One whole episode.

    Attributes:
        schema_version: Version of the record format.
        task_id: Id of the task.
        agent: Name of the agent, or "".
        model: Name of the agent's model, or "".
        seed: The seed of the reset that started the episode.
        attempt: Number of the attempt at this task, from 0.
        run_id: Id of the run that played the episode.
        messages: The chat with the policy, system prompt first.
        tools: The tools of the policy, OpenAI function schemas.
        turns: The actions and their results.
        stop_reason: The reason why the episode ended; None before the end.
        patch: The graded change, a unified diff.
        grade: The verdict; None before the end, and after a failure.
        toolset: Name of the toolset.
        tokenizer: Name of the tokenizer that ``token_ids`` belong to.
        usage: Numbers by name: ``turns``, ``tool_calls``, ``tokens`` (if a limit counts tokens),
            ``model_calls`` (requests to the model), and the sums of the counts that the model's
            server reports.
        cost: Cost of the model's tokens, in the currency of the prices; None if unknown.
        error: The message of a failure, such as of the agent or a sandbox; "" without a failure.
        error_class: The class of the failure: one of `ERROR_CLASSES`, or "".
        started_at: Start of the episode, ISO 8601 in UTC; "" if no runner played it.
        duration_s: Wall time after the sandbox was opened, in seconds, grading included.
        num_prefix_breaks: Number of prompts that do not continue the previous prompt and reply;
            each starts another training sample. None if the server returned no token ids.
        settings: Further arguments of the episode, as JSON values; empty in records of older
            versions. `coding_gym.resume_from` needs them.
    """

    schema_version: int = SCHEMA_VERSION
    task_id: str
    agent: str = ""
    model: str = ""
    seed: int | None = None
    attempt: int = 0
    run_id: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    turns: tuple[Turn, ...] = ()
    stop_reason: StopReason | None = None
    patch: str = ""
    grade: Grade | None = None
    toolset: str = ""
    tokenizer: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    cost: float | None = None
    error: str = ""
    error_class: str = ""
    started_at: str = ""
    duration_s: float = 0.0
    num_prefix_breaks: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    not_written: ClassVar[Any] = {"turns": {"__all__": {"messages"}}}  # `messages` has them

    def __post_init__(self) -> None:
        """Raises InvalidArgumentError if messages, calls or tools do not have OpenAI's form."""
        for number, message in enumerate(self.messages):
            if not _is_message(message):
                raise InvalidArgumentError(
                    f"messages[{number}] must have role and content as text, and in each entry of "
                    f"tool_calls an id and a function with name and arguments, got {message!r:.80}"
                )
        for number, tool in enumerate(self.tools):
            if not _is_tool(tool):
                raise InvalidArgumentError(
                    f"tools[{number}] must have a function with a name, got {tool!r:.80}"
                )

    @classmethod
    def parse(cls, text: bytes, name: object) -> Self:
        """Returns the record in a JSON text; ``name`` is the name of the file, for errors.

        Raises:
            InvalidArgumentError: The text is not a record.
        """
        try:
            return cls.from_json(json.loads(text))
        except (ValueError, RecursionError) as problem:
            raise InvalidArgumentError(
                f"{name} is not a record of an episode: {problem}; remove the file"
            ) from None

    @property
    def resolved(self) -> bool:
        """Whether the grade is resolved; False without a grade."""
        return self.grade is not None and self.grade.resolved

    @property
    def total_reward(self) -> float:
        """Sum of the rewards of all turns."""
        return sum(turn.reward for turn in self.turns)


def _is_message(message: Message) -> bool:
    """Returns whether a message has the form that the transcript writes."""
    match message:
        case {"role": str(), "content": str()}:
            calls = message.get("tool_calls", [])
            return isinstance(calls, list) and all(map(_is_call, calls))
    return False


def _is_call(call: Any) -> bool:
    match call:
        case {"id": _, "function": {"name": str(), "arguments": str()}}:
            return True
    return False


def _is_tool(tool: Any) -> bool:
    match tool:
        case {"function": {"name": str()}}:
            return True
    return False
