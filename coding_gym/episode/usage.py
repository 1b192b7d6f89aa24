"""What an episode has used of its limits."""

import math
import time
from dataclasses import dataclass, field, fields, replace
from typing import Self

from coding_gym.calls import ToolCall
from coding_gym.episode.limits import Limits
from coding_gym.episode.notices import budget_warning, call_digest, collapse_warning
from coding_gym.trajectory import StopReason

_MIN_RESPONSE_TOKENS = 256  # nano-agent 5.0.0, ``agent.py``, ``Agent._chat``
_PRICED_TOKENS = 1_000_000


@dataclass(slots=True)
class Usage:
    """What an episode has used so far.

    Attributes:
        turns: Actions.
        tool_calls: Tool calls.
        tokens: Tokens of the chat; 0 where no limit asks for them.
        seconds: Time, up to the last `start_clock` where a clock is running.
        cost: What the replies so far have cost, their prompts included.
        prompt_tokens: Tokens of the prompt of the last reply.
        repeats: How many times running the last call was made.
        last_call: What tells the last call from others.
        format_errors: How many of the last replies could not be read.
        since: When the clock was started, None where none is running.
    """

    turns: int = 0
    tool_calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    prompt_tokens: int = 0
    repeats: int = 0
    last_call: str = field(default="", repr=False)
    format_errors: int = 0
    since: float | None = field(default=None, repr=False, compare=False)

    def left(self, limits: Limits) -> dict[str, int | float | None]:
        """Returns what is left by name, never below 0; None where there is no bound.

        ``turns``, ``tool_calls``; ``tokens``, the reserve included; ``response_tokens`` for the
        next reply; ``seconds``, rounded up to whole ones, so that equal runs mostly say the same;
        ``cost``; ``repeats`` and ``format_errors``: how many more in a row will end the episode.
        """
        seconds = self.seconds_left(limits)
        more_calls = None if limits.max_repeats is None else limits.max_repeats + 1
        return {
            "turns": _rest(limits.max_turns, self.turns),
            "tool_calls": _rest(limits.max_tool_calls, self.tool_calls),
            "tokens": self.tokens_left(limits),
            "response_tokens": self.response_tokens(limits),
            "seconds": None if seconds is None else math.ceil(seconds),
            "cost": None if limits.max_cost is None else max(0.0, limits.max_cost - self.cost),
            "repeats": _rest(more_calls, self.repeats),
            "format_errors": _rest(limits.max_format_errors, self.format_errors),
        }

    def counted(self, limits: Limits) -> dict[str, int]:
        """Returns what was used by name, for the record; tokens where a limit counts them."""
        counts = {"turns": self.turns, "tool_calls": self.tool_calls}
        return counts | ({"tokens": self.tokens} if limits.counts_tokens else {})

    def known_cost(self, limits: Limits) -> float | None:
        """Returns the cost of the replies; None without prices, or where no tokens count."""
        has_prices = limits.input_price or limits.output_price
        return self.cost if limits.counts_tokens and has_prices else None

    def tokens_left(self, limits: Limits) -> int | None:
        """Returns the tokens left, the reserve included; None without a bound."""
        return _rest(limits.max_tokens, self.tokens)

    def response_tokens(self, limits: Limits) -> int | None:
        """Returns how many tokens the next reply should have at most, by nano-agent's rule.

        None where no ``response_limit`` is set. With a bound on tokens it is half of what is left
        beyond a tenth of them all, but at least 256 and at most the limit.
        """
        if limits.response_limit is None or limits.max_tokens is None:
            return limits.response_limit
        margin = int(limits.max_tokens * 0.1)
        available = max(0, limits.max_tokens - self.tokens - margin)
        return max(_MIN_RESPONSE_TOKENS, min(limits.response_limit, available // 2))

    def seconds_left(self, limits: Limits) -> float | None:
        """Returns the time left, in whole milliseconds; None without a bound."""
        if limits.max_seconds is None:
            return None
        return max(0, math.floor((limits.max_seconds - self._elapsed()) * 1000)) / 1000

    def charge(self, limits: Limits, reply_tokens: int) -> None:
        """Adds what a reply costs: the whole chat before it as input, itself as output."""
        prompt, cached = self.tokens, 0
        if limits.cached_input_price is not None:
            cached = min(self.prompt_tokens, prompt)
        millionths = (
            (prompt - cached) * limits.input_price
            + cached * (limits.cached_input_price or 0.0)
            + reply_tokens * limits.output_price
        )
        self.cost += millionths / _PRICED_TOKENS
        self.prompt_tokens = prompt

    def note_call(self, call: ToolCall) -> None:
        """Counts how many times running this call was made, ids apart."""
        digest = call_digest(call)
        self.repeats = self.repeats + 1 if digest == self.last_call else 1
        self.last_call = digest

    def warning(self, limits: Limits, call: ToolCall | None = None) -> str:
        """Returns what to put in front of the next tool's reply, before that call is counted.

        Args:
            limits: The bounds.
            call: The call, which was noted.
        """
        calls_left = _rest(limits.max_tool_calls, self.tool_calls)
        warning = budget_warning(
            self.tokens_left(limits) if limits.warn_tokens else None,
            calls_left if limits.warn_tool_calls else None,
        )
        if call is not None and self.repeats == limits.max_repeats:
            warning += collapse_warning(call, self.repeats)
        return warning

    def spent(self, limits: Limits) -> StopReason | None:
        """Returns the reason to stop after a tool call, or None; turns are for `spent_turns`."""
        left = self.left(limits)
        tokens = self.tokens_left(limits)
        reached = {
            StopReason.MAX_TOOL_CALLS: left["tool_calls"] == 0,
            StopReason.MAX_TOKENS: tokens is not None and tokens <= limits.reserve_tokens,
            StopReason.MAX_TIME: left["seconds"] == 0,
            StopReason.MAX_COST: left["cost"] == 0,
            StopReason.COLLAPSED: left["repeats"] == 0,
            StopReason.FORMAT_ERRORS: left["format_errors"] == 0,
        }
        return next((reason for reason, is_reached in reached.items() if is_reached), None)

    def spent_turns(self, limits: Limits) -> StopReason | None:
        """Returns the reason to stop after a turn, or None."""
        return StopReason.MAX_TURNS if _rest(limits.max_turns, self.turns) == 0 else None

    def start_clock(self) -> None:
        """Lets time count from now on."""
        self.since = time.monotonic()

    def stop_clock(self) -> None:
        """Lets no more time count."""
        self.seconds, self.since = self._elapsed(), None

    def copy(self) -> Self:
        """Returns what was used up to now, with the clock stopped."""
        return replace(self, seconds=self._elapsed(), since=None)

    def become(self, other: "Usage") -> None:
        """Takes over what another episode has used."""
        for each in fields(other):
            setattr(self, each.name, getattr(other, each.name))

    def _elapsed(self) -> float:
        return self.seconds + (0.0 if self.since is None else time.monotonic() - self.since)


def _rest(bound: int | None, used: int) -> int | None:
    return None if bound is None else max(0, bound - used)
