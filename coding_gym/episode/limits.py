"""How long an episode may go on."""

from dataclasses import asdict, dataclass

from coding_gym.arguments import at_least_one
from coding_gym.trajectory import StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Upper bounds of one episode; None means no bound.

    Attributes:
        max_turns: Actions.
        max_tool_calls: Tool calls; what a toolset charges for a reply without one counts too.
        max_tokens: Tokens of the prompt, the policy's replies and the observations together,
            without chat-template tokens.
    """

    max_turns: int | None = 50
    max_tool_calls: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuses bounds that no episode could keep."""
        for name, value in asdict(self).items():
            if value is not None:
                object.__setattr__(self, name, at_least_one(name, value))


@dataclass(slots=True)
class Usage:
    """What an episode has used so far."""

    turns: int = 0
    tool_calls: int = 0
    tokens: int = 0

    def left(self, limits: Limits) -> dict[str, int | None]:
        """Returns what is left by name (``turns``, ``tool_calls``, ``tokens``), never below 0."""

        def rest(bound: int | None, used: int) -> int | None:
            return None if bound is None else max(0, bound - used)

        return {
            "turns": rest(limits.max_turns, self.turns),
            "tool_calls": rest(limits.max_tool_calls, self.tool_calls),
            "tokens": rest(limits.max_tokens, self.tokens),
        }

    def spent(self, limits: Limits) -> StopReason | None:
        """Returns the reason to stop after a tool call, or None; turns are for `spent_turns`."""
        left = self.left(limits)
        if left["tool_calls"] == 0:
            return StopReason.MAX_TOOL_CALLS
        if left["tokens"] == 0:
            return StopReason.MAX_TOKENS
        return None

    def spent_turns(self, limits: Limits) -> StopReason | None:
        """Returns the reason to stop after a turn, or None."""
        if self.left(limits)["turns"] == 0:
            return StopReason.MAX_TURNS
        return None
