"""Counts what an episode uses of its limits, and returns the warnings for results of tools."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from coding_gym.calls import TOKEN_COUNTS, ModelCall, ToolCall
from coding_gym.episode.limits import Limits
from coding_gym.text.truncate import ends, well_formed
from coding_gym.trajectory import StopReason

TOKENS_CRITICAL = 1500
TOKENS_LOW = 3000
CALLS_LOW = 5

_MAX_COMMAND_CHARS = 200  # of the excerpt of a repeated command


@dataclass(slots=True)
class Usage:
    """The usage of an episode so far.

    Attributes:
        turns: Number of actions.
        tool_calls: Number of tool calls.
        tokens: Number of tokens of the chat; 0 if no limit counts tokens. For a harness: tokens of
            its last prompt and reply.
        seconds: Time inside tool calls, in seconds. For a harness: time since its first request.
        cost: Cost of the replies and their prompts, in the currency of the prices.
        repeats: Number of consecutive identical calls, including the last call.
        last_call: Name, arguments and error of the last call, as JSON.
        format_errors: Number of consecutive unreadable replies.
    """

    turns: int = 0
    tool_calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    repeats: int = 0
    last_call: str = field(default="", repr=False)
    format_errors: int = 0

    def left(self, limits: Limits) -> dict[str, int | float | None]:
        """Returns the remaining amount of each limit by name, at least 0; None without a bound.

        ``tokens`` includes the reserve; ``seconds`` is rounded up. ``repeats`` more consecutive
        identical calls, or ``format_errors`` more consecutive unreadable replies, end the episode.
        """
        seconds = self.seconds_left(limits)
        bounds: dict[str, tuple[int | float | None, int | float]] = {
            "turns": (limits.max_turns, self.turns),
            "tool_calls": (limits.max_tool_calls, self.tool_calls),
            "tokens": (limits.max_tokens, self.tokens),
            "seconds": (None if seconds is None else math.ceil(seconds), 0),
            "cost": (limits.max_cost, self.cost),
            "repeats": (limits.max_repeats, self.repeats - 1),  # one more call ends the episode
            "format_errors": (limits.max_format_errors, self.format_errors),
        }
        return {
            name: None if bound is None else bound - min(used, bound)
            for name, (bound, used) in bounds.items()
        }

    def seconds_left(self, limits: Limits) -> float | None:
        """Returns the remaining seconds, rounded down to milliseconds; None without a bound."""
        if limits.max_seconds is None:
            return None
        return max(0, math.floor((limits.max_seconds - self.seconds) * 1000)) / 1000

    def charge(self, limits: Limits, prompt_tokens: int, reply_tokens: int) -> None:
        """Adds the cost of a reply and its prompt."""
        millionths = prompt_tokens * limits.input_price + reply_tokens * limits.output_price
        self.cost += millionths / 1e6

    def add_reply(self, limits: Limits, call: ModelCall, num_tool_calls: int) -> None:
        """Counts a model's reply to a harness; the prices of the limits replace a missing cost."""
        num_prompt, num_sampled = call.prompt_tokens or 0, call.completion_tokens or 0
        self.turns += 1
        self.tool_calls += num_tool_calls
        self.tokens = num_prompt + num_sampled
        if call.cost is None:
            self.charge(limits, num_prompt, num_sampled)
        else:
            self.cost += call.cost

    def note_call(self, call: ToolCall) -> None:
        """Counts consecutive identical calls, this call included, ignoring ids."""
        fields = [call.name, dict(call.arguments), call.error]
        call_json = json.dumps(fields, sort_keys=True)
        self.repeats = self.repeats + 1 if call_json == self.last_call else 1
        self.last_call = call_json

    def warning(self, limits: Limits, call: ToolCall) -> str:
        """Returns the warnings for the result of a call that `tool_calls` does not count yet.

        Wording, order and thresholds of the first warning, about tokens or calls, are nano-agent
        5.0.0's (``agent.py``, ``Agent._tool_reply``).
        """
        budget, warning = self.left(limits), ""
        tokens_left = budget["tokens"] if limits.warn_tokens else None
        calls_left = budget["tool_calls"] if limits.warn_tool_calls else None
        if tokens_left is not None and tokens_left < TOKENS_CRITICAL:
            warning = "Token limit critical! Apply your best fix now.\n"
        elif tokens_left is not None and tokens_left < TOKENS_LOW:
            warning = "Tokens low. Focus on the main issue only.\n"
        elif calls_left is not None and 1 < calls_left < CALLS_LOW:
            warning = f"{calls_left} tools left. Prioritize essential changes.\n"
        elif calls_left == 1:
            warning = "Last tool call! Make it count.\n"
        if self.repeats == limits.max_repeats:
            warning += collapse_warning(call, self.repeats)
        return warning

    def spent(self, limits: Limits) -> StopReason | None:
        """Returns the reason to stop after a tool call or a turn, or None."""
        if limits.max_tool_calls is not None and self.tool_calls >= limits.max_tool_calls:
            return StopReason.MAX_TOOL_CALLS
        tokens_left = None if limits.max_tokens is None else limits.max_tokens - self.tokens
        if tokens_left is not None and tokens_left <= limits.reserve_tokens:
            return StopReason.MAX_TOKENS
        if limits.max_seconds is not None and self.seconds_left(limits) == 0:
            return StopReason.MAX_TIME
        if limits.max_cost is not None and self.cost >= limits.max_cost:
            return StopReason.MAX_COST
        if limits.max_repeats is not None and self.repeats > limits.max_repeats:
            return StopReason.COLLAPSED
        if limits.max_format_errors is not None and self.format_errors >= limits.max_format_errors:
            return StopReason.FORMAT_ERRORS
        if limits.max_turns is not None and self.turns >= limits.max_turns:
            return StopReason.MAX_TURNS
        return None


def total_usage(calls: Sequence[ModelCall]) -> dict[str, int]:
    """Returns the number of requests to a model, and the sums of counts that all requests have."""
    if not calls:
        return {}
    names = (*TOKEN_COUNTS, "num_retries")
    counts = {name: [getattr(call, name) for call in calls] for name in names}
    sums = {name: sum(values) for name, values in counts.items() if None not in values}
    return {"model_calls": len(calls), **sums}


def total_cost(calls: Sequence[ModelCall]) -> float | None:
    """Returns the cost of requests to a model; None if the cost of a request is unknown."""
    costs = [call.cost for call in calls if call.cost is not None]
    return sum(costs) if calls and len(costs) == len(calls) else None


def collapse_warning(call: ToolCall, num_repeats: int) -> str:
    """Returns the warning for the result of a repeated call.

    The wording is NeMo Gym's (its mini-SWE-agent environment). A call whose arguments are not a
    single command is displayed with the tool's name; the middle of a long call is omitted.
    """
    arguments = dict(call.arguments)
    command = arguments.get("cmd", arguments.get("command"))
    if len(arguments) != 1 or not isinstance(command, str):
        command = f"{call.name} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)}"
    excerpt = well_formed(ends(command, _MAX_COMMAND_CHARS, " … "))
    return (
        f"The last {num_repeats} commands you generated were identical: '{excerpt}'. This suggests "
        "you may be stuck in a loop. Please try a different approach or command.\n"
    )
