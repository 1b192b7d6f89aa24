"""Limits of an episode as wrappers: aliases of the env's argument ``limits``.

Each wrapper only sets fields of `CodingRepairEnv.limits`, which the next `reset` reads, so their
order in a chain does not matter. The episode enforces them (`coding_gym.episode.Limits`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, ClassVar

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import at_least, at_least_one, positive_seconds, true_or_false
from coding_gym.episode.limits import Limits
from coding_gym.errors import InvalidArgumentError
from coding_gym.wrappers.chain import check_order


def _not_none(name: str, value: Any) -> Any:
    if value is None:
        raise InvalidArgumentError(f"{name} must be a number, got None")
    return value


# Checks that name an argument as the wrapper does, or that refuse None where `Limits` takes it.
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "max_tokens": at_least_one,
    "max_tool_calls": at_least_one,
    "max_errors": at_least_one,
    "repeats": partial(at_least, 2),
    "max_seconds": positive_seconds,
    "max_cost": _not_none,
    "warnings": true_or_false,
}


class _LimitWrapper(
    gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs
):
    """Sets fields of the limits, of which the first is the bound and must not be set already.

    Attributes:
        FIELDS: The fields of `Limits` that have another name than the argument.
    """

    FIELDS: ClassVar[Mapping[str, str]] = {}

    def __init__(self, env: gym.Env[ObsType, ActType], **arguments: Any) -> None:
        core = check_order(type(self), env)
        bound, parameters = next(iter(arguments)), signature(type(self)).parameters
        fields = {name: self.FIELDS.get(name, name) for name in arguments}
        chosen = {}
        for name, field in fields.items():
            value = arguments[name]
            value = _CHECKS[name](name, value) if name in _CHECKS else value
            already = getattr(core.limits, field)
            if already not in (value, getattr(Limits(), field)):
                if name == bound or value != getattr(parameters.get(name), "default", None):
                    raise InvalidArgumentError(
                        f"{field} is set twice: in limits and by {type(self).__name__}; remove one"
                    )
                value = already  # a default gives way to what the env's limits say
            chosen[field] = value
        limits = replace(core.limits, **chosen)
        recorded = {name: getattr(limits, field) for name, field in fields.items()}
        gym.utils.RecordConstructorArgs.__init__(self, **recorded)
        gym.Wrapper.__init__(self, env)
        core.limits = limits


class TokenBudget(_LimitWrapper[ObsType, ActType]):
    """Truncates an episode when its tokens are spent, after warnings.

    The prompt, the replies and the observations count, by the env's tokenizer; a
    `coding_gym.Completion` counts by its ids. ``info["budget"]["tokens"]`` says how many are left,
    the reserve included. Two ways to count:

    - ``"chat"``: the chat as a model is sent it, with roles, control tokens, tool schemas and the
      generation prompt; the number of ids that `TranscriptObservation` observes in a running
      episode. nano-agent counts the schemas too, and estimates the rest.
    - ``"content"``: the contents of the messages alone, for any tokenizer.

    The episode ends with ``max_tokens`` as soon as no more than the reserve is left, within an
    action too; the first call of a reply that is too long is still run. Where the prompt alone
    leaves no more than the reserve, the first step ends the episode and its action is not played.
    Warnings stand before replies of tools when fewer than 3,000 and fewer than 1,500 tokens are
    left. They and the defaults are those of nano-agent 5.0.0.

    Args:
        env: The environment, which may be wrapped.
        max_tokens: Tokens per episode.
        reserve_tokens: Tokens of these that the episode must not use up.
        warnings: Whether the policy is warned.
        count: ``"chat"`` or ``"content"``.
        response_limit: The most tokens of one reply, which nothing cuts off;
            ``info["budget"]["response_tokens"]`` says how many nano-agent would ask for next: at
            most half of those left beyond a tenth of ``max_tokens``, but at least 256.

    Raises:
        InvalidArgumentError: A number cannot be used, ``env`` cannot be wrapped, or its tokenizer
            has no chat template to count by.
        UnknownNameError: There is no such way to count.
    """

    FIELDS: ClassVar[Mapping[str, str]] = {"warnings": "warn_tokens"}

    def __init__(
        self,
        env: gym.Env[ObsType, ActType],
        max_tokens: int = 8192,
        reserve_tokens: int = 600,
        warnings: bool = True,
        count: str = "chat",
        response_limit: int | None = None,
    ) -> None:
        super().__init__(
            env,
            max_tokens=max_tokens,
            reserve_tokens=reserve_tokens,
            warnings=warnings,
            count=count,
            response_limit=response_limit,
        )


class ToolCallBudget(_LimitWrapper[ObsType, ActType]):
    """Truncates an episode when its tool calls are spent, after warnings.

    Every call of a reply counts, failed ones too, and so does a reply without a call that the
    toolset charges for. The episode ends with ``max_tool_calls`` after the last one, within an
    action too (nano-agent 5.0.0, whose warnings and default these are, grants one reply more).
    Warnings stand before the replies to the last four calls. ``info["budget"]["tool_calls"]`` says
    how many are left.

    Args:
        env: The environment, which may be wrapped.
        max_tool_calls: Tool calls per episode.
        warnings: Whether the policy is warned.

    Raises:
        InvalidArgumentError: The number cannot be used, or ``env`` cannot be wrapped.
    """

    FIELDS: ClassVar[Mapping[str, str]] = {"warnings": "warn_tool_calls"}

    def __init__(
        self, env: gym.Env[ObsType, ActType], max_tool_calls: int = 30, warnings: bool = True
    ) -> None:
        super().__init__(env, max_tool_calls=max_tool_calls, warnings=warnings)


class TimeBudget(_LimitWrapper[ObsType, ActType]):
    """Truncates an episode when its time is spent; a command gets no more than what is left.

    Two clocks:

    - ``"commands"``: the time inside tool calls alone, so that a policy's return does not depend on
      the speed of the policy, the trainer or other slots of a vector env.
    - ``"wall"``: all time since `reset` returned, as nano-agent counts it, for evaluation against a
      deadline. An action that comes too late is not played.

    The episode ends with ``max_time`` after the call that spends the time, within an action too.
    ``info["budget"]["seconds"]`` says how many whole seconds are left, rounded up: the one number
    there that may differ between equal runs. A snapshot keeps the time used so far.

    Args:
        env: The environment, which may be wrapped.
        max_seconds: Seconds per episode. The default is ten times a command's own bound.
        clock: ``"commands"`` or ``"wall"``.

    Raises:
        InvalidArgumentError: The number cannot be used, or ``env`` cannot be wrapped.
        UnknownNameError: There is no such clock.
    """

    def __init__(
        self, env: gym.Env[ObsType, ActType], max_seconds: float = 1200.0, clock: str = "commands"
    ) -> None:
        super().__init__(env, max_seconds=max_seconds, clock=clock)


class CostBudget(_LimitWrapper[ObsType, ActType]):
    """Truncates an episode when its money is spent.

    Every reply is charged as an API bills it: the whole chat before it as input, the reply as
    output, at a price for a million tokens each. With ``cached_input_price``, tokens that were in
    the last prompt too are charged at that price, as by a server that caches every prefix. The
    env's tokenizer counts the chat as a model is sent it, or as a `TokenBudget` in the same chain
    counts it.

    The episode ends with ``max_cost`` after the tool call, or the reply without one, that spends
    the money. ``info["budget"]["cost"]`` says how much is left, in the currency of the prices.

    Args:
        env: The environment, which may be wrapped.
        max_cost: What an episode may cost, in any currency.
        input_price: Of a million tokens of input, in that currency.
        output_price: Of a million tokens of output.
        cached_input_price: Of a million tokens of input that were in the last prompt; None where
            they cost as much as others.

    Raises:
        InvalidArgumentError: A number cannot be used, ``env`` cannot be wrapped, or its tokenizer
            has no chat template to count by.
    """

    def __init__(
        self,
        env: gym.Env[ObsType, ActType],
        max_cost: float,
        input_price: float,
        output_price: float,
        cached_input_price: float | None = None,
    ) -> None:
        super().__init__(
            env,
            max_cost=max_cost,
            input_price=input_price,
            output_price=output_price,
            cached_input_price=cached_input_price,
        )


class CollapseDetector(_LimitWrapper[ObsType, ActType]):
    """Warns a policy that makes the same call over and over, and then truncates the episode.

    Two calls are the same where their name and arguments are, in any order of the keys, in one
    reply or in several. The reply to the last call that is allowed begins with the warning; one
    more ends the episode with ``collapsed``. Another call starts the count again; a reply without
    a call does not. ``info["budget"]["repeats"]`` says how many more end the episode.

    The warning and the default are NeMo Gym's, which misses repeats that begin after other
    commands.

    Args:
        env: The environment, which may be wrapped.
        repeats: How many times running the same call may be made, at least 2.

    Raises:
        InvalidArgumentError: The number cannot be used, or ``env`` cannot be wrapped.
    """

    FIELDS: ClassVar[Mapping[str, str]] = {"repeats": "max_repeats"}

    def __init__(self, env: gym.Env[ObsType, ActType], repeats: int = 3) -> None:
        super().__init__(env, repeats=repeats)


class FormatErrorLimit(_LimitWrapper[ObsType, ActType]):
    """Truncates an episode after so many replies in a row that could not be read.

    A reply counts where it seems to hold a call of which nothing could be read, where all its calls
    have malformed arguments, and where it has no call and the toolset says that this is an error
    (`coding_gym.tools.NoCall.is_format_error`). A reply with a call that can be read starts the
    count again, whether the tool exists or not. The default is mini-swe-agent's.

    The episode ends with ``format_errors``; ``info["budget"]["format_errors"]`` says how many more
    end it.

    Args:
        env: The environment, which may be wrapped.
        max_errors: Replies in a row.

    Raises:
        InvalidArgumentError: The number cannot be used, or ``env`` cannot be wrapped.
    """

    FIELDS: ClassVar[Mapping[str, str]] = {"max_errors": "max_format_errors"}

    def __init__(self, env: gym.Env[ObsType, ActType], max_errors: int = 3) -> None:
        super().__init__(env, max_errors=max_errors)
