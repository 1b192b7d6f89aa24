"""One action against the tools: its calls are read, run in order, counted and answered."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from coding_gym.action import Completion
from coding_gym.calls import ToolCall, ToolResult
from coding_gym.episode import transcript
from coding_gym.episode.context import Context
from coding_gym.episode.counting import ChatCount, ContentCount, TokenCount
from coding_gym.episode.limits import Limits
from coding_gym.episode.usage import Usage
from coding_gym.errors import MachineryError
from coding_gym.text.chat import get_chat
from coding_gym.text.tokenizers import Tokenizer
from coding_gym.tools import Toolset
from coding_gym.tools.formats import parse_action
from coding_gym.trajectory import Message, StopReason

_LEAST_S = 0.001  # time may run out while a reply is read; no command takes 0 seconds


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

    Raises:
        InvalidArgumentError: Tokens are counted as a chat, and the tokenizer has no template.
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
        self._count: TokenCount | None = None
        if limits.counts_tokens and limits.count == "chat":
            self._count = ChatCount(get_chat(tokenizer, toolset.schemas, tool_format))
        elif limits.counts_tokens:
            self._count = ContentCount(tokenizer)

    def begin(self, opening: Sequence[Message] = ()) -> None:
        """Counts the prompt, where there is a new one, and lets the time run."""
        if opening and self._count is not None:
            self._usage.tokens += self._count.opening(opening)
        if self._limits.has_wall_clock:
            self._usage.start_clock()

    def play(self, action: str, context: Context) -> Played:
        """Answers one action; failures of our side end the episode instead of being raised."""
        self._count_reply(action)
        parsed = parse_action(
            str(action),
            self._format,
            self._toolset.schemas,
            text_formats=self._toolset.text_formats,
        )
        played = Played(messages=[transcript.assistant(str(action), parsed)], calls=parsed.calls)
        if any(not call.error for call in parsed.calls):
            self._usage.format_errors = 0
        elif parsed.calls:
            self._usage.format_errors += 1
        try:
            if parsed.calls:
                played.stop_reason = self._run_calls(parsed.calls, context, played)
            else:
                played.stop_reason = self._answer_no_call(parsed.error, context, played)
        except MachineryError as failure:
            played.stop_reason, played.error = StopReason.SANDBOX_ERROR, str(failure)
        if self._count is not None:
            self._usage.tokens += self._count.close()
        return played

    def _count_reply(self, action: str) -> None:
        """Counts sampled ids where they are given, else an encoding, and charges for them."""
        if self._count is not None:
            sampled = action.token_ids if isinstance(action, Completion) else None
            ids = self._tokenizer.encode(action) if sampled is None else sampled
            self._usage.charge(self._limits, len(ids))
            self._usage.tokens += self._count.reply(ids)

    def _add(self, message: Message, played: Played) -> None:
        """Answers the policy by one message."""
        played.messages.append(message)
        if self._count is not None:
            self._usage.tokens += self._count.answer(message)

    def _run_calls(
        self, calls: Sequence[ToolCall], context: Context, played: Played
    ) -> StopReason | None:
        """Runs the calls of one action in order, until one of them ends the episode."""
        for call in calls:
            result = self._execute(call, context)
            played.results.append(result)
            self._add(transcript.tool(result), played)
            self._usage.tool_calls += 1
            reason = StopReason.SUBMITTED if result.submitted else self._usage.spent(self._limits)
            if reason:
                return reason
        return None

    def _execute(self, call: ToolCall, context: Context) -> ToolResult:
        """Runs one call; a warning stands in front of the answer, of every kind of it."""
        if self._limits.max_repeats is not None:
            self._usage.note_call(self._toolset.canonical(call))
        left = self._usage.seconds_left(self._limits)
        if left is not None and left < context.command_timeout_s:
            context = replace(context, command_timeout_s=max(left, _LEAST_S))
        began = time.perf_counter()
        result = self._toolset.execute(call, context)
        duration_s = time.perf_counter() - began
        if self._limits.max_seconds is not None and not self._limits.has_wall_clock:
            self._usage.seconds += duration_s
        return replace(
            result,
            content=self._usage.warning(self._limits, call) + result.content,
            call_id=call.call_id,
            duration_s=duration_s,
        )

    def _answer_no_call(self, problem: str, context: Context, played: Played) -> StopReason | None:
        """Answers a reply without a call by a user message, which carries no warning."""
        if problem:
            if self._limits.max_repeats is not None:
                self._usage.note_call(ToolCall("", {"error": problem}))
            self._usage.tool_calls += 1
            self._usage.format_errors += 1
            reply = problem
        else:
            answer = self._toolset.on_no_call(context)
            if answer.ends:
                return StopReason.NO_TOOL_CALL
            self._usage.tool_calls += answer.costs_call
            self._usage.format_errors += answer.is_format_error
            reply = answer.reply
        self._add(transcript.user(reply), played)
        return self._usage.spent(self._limits)
