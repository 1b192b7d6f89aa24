"""One action against the tools: its calls are read, run in order, counted and answered."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from coding_gym.action import Completion
from coding_gym.calls import ToolCall, ToolResult
from coding_gym.episode import transcript
from coding_gym.episode.context import Context
from coding_gym.episode.limits import Limits, Usage
from coding_gym.errors import MachineryError
from coding_gym.text.tokenizers import Tokenizer
from coding_gym.tools.formats import parse_action
from coding_gym.tools.protocol import Toolset, tool_names
from coding_gym.trajectory import Message, StopReason


@dataclass(slots=True, kw_only=True)
class Played:
    """What one action led to, as far as it got.

    Attributes:
        messages: The new chat messages, the policy's own first.
        calls: The tool calls that were read from the action.
        results: Their results; fewer than calls where the episode ended first.
        stop_reason: Why the episode is to end, or None.
        error: What failed on our side, or "".
    """

    messages: list[Message] = field(default_factory=list)
    calls: tuple[ToolCall, ...] = ()
    results: list[ToolResult] = field(default_factory=list)
    stop_reason: StopReason | None = None
    error: str = ""


class Player:
    """Plays the actions of one episode within its limits.

    Args:
        toolset: The tools that the policy has.
        tokenizer: Counts tokens.
        tool_format: How tool calls are written; see `coding_gym.tools.formats`.
        limits: Upper bounds.
        usage: What the episode has used; counted up here.
    """

    def __init__(
        self,
        toolset: Toolset,
        tokenizer: Tokenizer,
        *,
        tool_format: str,
        limits: Limits,
        usage: Usage,
    ) -> None:
        self._toolset = toolset
        self._tokenizer = tokenizer
        self._format = tool_format
        self._limits = limits
        self._usage = usage
        self._tool_names = tool_names(toolset)

    def count_tokens(self, *texts: str) -> None:
        """Counts texts against the budget: sampled ids where they are given, else an encoding."""
        if self._limits.max_tokens is not None:
            for text in texts:
                ids = text.token_ids if isinstance(text, Completion) else None
                self._usage.tokens += len(self._tokenizer.encode(text) if ids is None else ids)

    def play(self, action: str, context: Context) -> Played:
        """Answers one action; failures of our side end the episode instead of being raised."""
        self.count_tokens(action)
        parsed = parse_action(str(action), self._format, self._tool_names)
        played = Played(
            messages=[transcript.assistant(str(action), parsed.calls)], calls=parsed.calls
        )
        try:
            if parsed.calls:
                played.stop_reason = self._run_calls(parsed.calls, context, played)
            else:
                played.stop_reason = self._answer_no_call(parsed.error, context, played)
        except MachineryError as failure:
            played.stop_reason, played.error = StopReason.SANDBOX_ERROR, str(failure)
        return played

    def _run_calls(
        self, calls: Sequence[ToolCall], context: Context, played: Played
    ) -> StopReason | None:
        """Runs the calls of one action in order, until one of them ends the episode."""
        for call in calls:
            result = self._execute(call, context)
            played.results.append(result)
            played.messages.append(transcript.tool(result))
            self._usage.tool_calls += 1
            self.count_tokens(result.content)
            reason = StopReason.SUBMITTED if result.submitted else self._usage.spent(self._limits)
            if reason:
                return reason
        return None

    def _execute(self, call: ToolCall, context: Context) -> ToolResult:
        """Runs one call; a warning stands in front of the answer, of every kind of it."""
        began = time.perf_counter()
        result = self._toolset.execute(call, context)
        return replace(
            result,
            content=self._usage.warning(self._limits) + result.content,
            call_id=call.call_id,
            duration_s=time.perf_counter() - began,
        )

    def _answer_no_call(self, problem: str, context: Context, played: Played) -> StopReason | None:
        """Answers a reply without a call by a user message, which carries no warning."""
        if problem:
            self._usage.tool_calls += 1
            reply = problem
        else:
            answer = self._toolset.on_no_call(context)
            if answer.ends:
                return StopReason.NO_TOOL_CALL
            self._usage.tool_calls += answer.costs_call
            reply = answer.reply
        self.count_tokens(reply)
        played.messages.append(transcript.user(reply))
        return self._usage.spent(self._limits)
