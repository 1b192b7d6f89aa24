"""How long an episode may go on."""

from dataclasses import dataclass
from numbers import Integral

from coding_gym.arguments import at_least_one
from coding_gym.episode.notices import budget_warning
from coding_gym.errors import InvalidArgumentError
from coding_gym.trajectory import StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Upper bounds of one episode; None means no bound.

    Whatever bound is reached ends the episode at once, within an action too: the calls that an
    action still holds are not run. nano-agent 5.0.0 looks only between replies, and goes on while
    its remaining calls are at least zero, so it grants one reply more than its limit says; here an
    episode ends when ``max_tool_calls`` are spent.

    Attributes:
        max_turns: Actions.
        max_tool_calls: Tool calls; what a toolset charges for a reply without one counts too.
        max_tokens: Tokens of the prompt, the policy's replies and the observations together,
            without chat-template tokens.
        reserve_tokens: The episode ends as soon as no more than these are left of ``max_tokens``.
        warn_tokens: Whether replies of tools say when few tokens are left.
        warn_tool_calls: Whether replies of tools say when few tool calls are left.

    Raises:
        InvalidArgumentError: A bound that no episode could keep.
    """

    max_turns: int | None = 50
    max_tool_calls: int | None = None
    max_tokens: int | None = None
    reserve_tokens: int = 0
    warn_tokens: bool = False
    warn_tool_calls: bool = False

    def __post_init__(self) -> None:
        """Refuses bounds that no episode could keep."""
        for name in ("max_turns", "max_tool_calls", "max_tokens"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, at_least_one(name, value))
        reserve: object = self.reserve_tokens
        if isinstance(reserve, bool) or not isinstance(reserve, Integral) or reserve < 0:
            raise InvalidArgumentError(
                f"reserve_tokens must be an integer of at least 0, got {reserve!r}"
            )
        object.__setattr__(self, "reserve_tokens", int(reserve))
        if self.max_tokens is not None and self.max_tokens <= self.reserve_tokens:
            raise InvalidArgumentError(
                f"max_tokens must be more than reserve_tokens ({self.reserve_tokens}), "
                f"got {self.max_tokens}; raise max_tokens or lower reserve_tokens"
            )


@dataclass(slots=True)
class Usage:
    """What an episode has used so far."""

    turns: int = 0
    tool_calls: int = 0
    tokens: int = 0

    def left(self, limits: Limits) -> dict[str, int | None]:
        """Returns what is left by name (``turns``, ``tool_calls``, ``tokens``), never below 0.

        The reserve is part of the tokens left.
        """

        def rest(bound: int | None, used: int) -> int | None:
            return None if bound is None else max(0, bound - used)

        return {
            "turns": rest(limits.max_turns, self.turns),
            "tool_calls": rest(limits.max_tool_calls, self.tool_calls),
            "tokens": rest(limits.max_tokens, self.tokens),
        }

    def become(self, other: "Usage") -> None:
        """Takes over what another episode has used."""
        self.turns, self.tool_calls, self.tokens = other.turns, other.tool_calls, other.tokens

    def warning(self, limits: Limits) -> str:
        """Returns what to put in front of the next tool's reply, before that call is counted."""
        left = self.left(limits)
        return budget_warning(
            left["tokens"] if limits.warn_tokens else None,
            left["tool_calls"] if limits.warn_tool_calls else None,
        )

    def spent(self, limits: Limits) -> StopReason | None:
        """Returns the reason to stop after a tool call, or None; turns are for `spent_turns`."""
        left = self.left(limits)
        if left["tool_calls"] == 0:
            return StopReason.MAX_TOOL_CALLS
        if left["tokens"] is not None and left["tokens"] <= limits.reserve_tokens:
            return StopReason.MAX_TOKENS
        return None

    def spent_turns(self, limits: Limits) -> StopReason | None:
        """Returns the reason to stop after a turn, or None."""
        if self.left(limits)["turns"] == 0:
            return StopReason.MAX_TURNS
        return None
