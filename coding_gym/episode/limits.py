"""Upper bounds of an episode."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

from pydantic import Field, StrictBool

from coding_gym.arguments import MAX_SECONDS
from coding_gym.errors import InvalidArgumentError
from coding_gym.json_record import JsonRecord

MAX_TURNS = 50
"""Default number of actions of an episode."""

Count = Annotated[int, Field(strict=True, ge=1)]
Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(JsonRecord):
    """Upper bounds of one episode; None means no bound.

    The first bound that is reached ends the episode immediately, even within an action: the
    remaining calls of the action do not run. nano-agent 5.0.0 checks only between replies and
    allows one reply more than its limit; here an episode has at most ``max_tool_calls`` calls.

    Attributes:
        max_turns: Maximum number of actions. A task can have a lower limit.
        max_tool_calls: Maximum number of tool calls; a reply without a call counts as one call,
            except for a command-line agent.
        max_tokens: Maximum number of tokens of the chat, as in a request to a model: contents,
            roles, control tokens and tool schemas.
        reserve_tokens: The episode ends as soon as this many of ``max_tokens`` or fewer are left.
        warn_tokens: Whether results of tools warn when few tokens are left.
        warn_tool_calls: Whether results of tools warn when few tool calls are left.
        max_seconds: Maximum seconds inside tool calls; a command that runs longer is killed. For a
            command-line agent: seconds since its first request.
        max_cost: Maximum cost of the tokens, in the currency of the prices.
        input_price: Price of a million tokens of prompts.
        output_price: Price of a million tokens of replies.
        max_repeats: Maximum number of consecutive identical calls; the result of the last allowed
            call has a warning.
        max_format_errors: Number of consecutive unreadable replies that ends the episode.

    Raises:
        InvalidArgumentError: Two fields conflict. `parse` checks each field.
    """

    max_turns: Count | None = MAX_TURNS
    max_tool_calls: Count | None = None
    max_tokens: Count | None = None
    reserve_tokens: Annotated[int, Field(strict=True, ge=0)] = 0
    warn_tokens: StrictBool = False
    warn_tool_calls: StrictBool = False
    max_seconds: Annotated[Amount, Field(gt=0, le=MAX_SECONDS)] | None = None
    max_cost: Annotated[Amount, Field(gt=0)] | None = None
    input_price: Amount = 0.0
    output_price: Amount = 0.0
    max_repeats: Annotated[Count, Field(ge=2)] | None = None
    max_format_errors: Count | None = None

    def __post_init__(self) -> None:
        """Raises InvalidArgumentError for fields that conflict."""
        if self.max_cost is not None and not (self.input_price or self.output_price):
            raise InvalidArgumentError("max_cost needs input_price or output_price above 0, got 0")
        if self.max_tokens is not None and self.max_tokens <= self.reserve_tokens:
            raise InvalidArgumentError(
                f"max_tokens must be more than reserve_tokens ({self.reserve_tokens}), "
                f"got {self.max_tokens}; raise max_tokens or lower reserve_tokens"
            )

    @classmethod
    def parse(
        cls, limits: Mapping[str, Any] | None = None, max_turns: int | None = MAX_TURNS
    ) -> Self:
        """Returns the limits that the env arguments ``limits`` and ``max_turns`` set.

        Args:
            limits: Fields of this class by name.
            max_turns: The same as ``limits["max_turns"]``, which takes precedence over the default.

        Raises:
            InvalidArgumentError: A field is unknown or invalid, or a ``max_turns`` other than the
                default contradicts ``limits``.
        """
        if not isinstance(limits, Mapping | None):
            raise InvalidArgumentError(
                f'limits must be a mapping such as {{"max_tool_calls": 30}}, got {limits!r}'
            )
        values = dict(limits or {})
        if "max_turns" in values and max_turns not in (values["max_turns"], MAX_TURNS):
            raise InvalidArgumentError(
                f"max_turns={max_turns!r} and limits={{'max_turns': {values['max_turns']!r}}} "
                "differ; set one of them"
            )
        return cls.from_arguments({"max_turns": max_turns, **values}, "limits")

    @property
    def counts_tokens(self) -> bool:
        """Whether a limit needs the number of tokens."""
        return self.max_tokens is not None or self.max_cost is not None

    def with_turns(self, max_turns: int) -> "Limits":
        """Returns these limits with at most ``max_turns`` turns; 0 changes nothing."""
        if not max_turns or (self.max_turns is not None and self.max_turns <= max_turns):
            return self
        return replace(self, max_turns=max_turns)
