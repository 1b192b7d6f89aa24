"""A budget of tokens per episode, with nano-agent's warnings."""

from dataclasses import replace

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import at_least_one
from coding_gym.episode.limits import Limits
from coding_gym.errors import InvalidArgumentError
from coding_gym.wrappers.wrapped_env import core_env


class TokenBudget(gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs):
    """Truncates an episode when its tokens are spent, after warnings.

    The wrapper sets the limits of tokens of the env (`CodingRepairEnv.limits`) from the next
    `reset` on, with nano-agent's defaults; the argument ``limits`` of the env does the same. The
    prompt, the replies and the observations count, by the env's tokenizer; a
    `coding_gym.Completion` counts by its ids. ``info["budget"]["tokens"]`` is the number of tokens
    left, including the reserve. Two ways to count:

    - ``"chat"``: the chat as a request to a model, with roles, control tokens, tool schemas and the
      generation prompt; the number of ids that `TranscriptObservation` observes in a running
      episode. nano-agent counts the schemas too, and estimates the rest.
    - ``"content"``: the contents of the messages alone, for any tokenizer.

    The episode ends with ``max_tokens`` as soon as no more than the reserve is left, also between
    the calls of one action; the first call of a reply that is too long still runs. If the prompt
    alone leaves no more than the reserve, the first step ends the episode and its action is not
    played. Warnings precede results of tools when fewer than 3,000 and fewer than 1,500 tokens are
    left. They and the defaults are those of nano-agent 5.0.0.

    Args:
        env: The environment, which may be wrapped.
        max_tokens: Tokens per episode.
        reserve_tokens: Tokens of these that the episode must not use.
        warnings: Whether results of tools contain the warnings.
        count: ``"chat"`` or ``"content"``.
        response_limit: The most tokens of one reply, which nothing cuts off;
            ``info["budget"]["response_tokens"]`` is the number that nano-agent would request next:
            at most half of the tokens left beyond a tenth of ``max_tokens``, but at least 256.

    Raises:
        InvalidArgumentError: A number cannot be used, ``limits`` of the env has another value for
            one of them, ``env`` cannot be wrapped, or its tokenizer has no chat template to count
            by.
        UnknownNameError: There is no such way to count.
    """

    def __init__(
        self,
        env: gym.Env[ObsType, ActType],
        max_tokens: int = 8192,
        reserve_tokens: int = 600,
        warnings: bool = True,
        count: str = "chat",
        response_limit: int | None = None,
    ) -> None:
        core = core_env(TokenBudget, env)
        budget = Limits(
            max_tokens=at_least_one("max_tokens", max_tokens),
            reserve_tokens=reserve_tokens,
            warn_tokens=warnings,
            count=count,
            response_limit=response_limit,
        )
        names = ("max_tokens", "reserve_tokens", "warn_tokens", "count", "response_limit")
        fields = {name: getattr(budget, name) for name in names}
        for name, value in fields.items():
            existing = getattr(core.limits, name)
            if existing not in (value, getattr(Limits(), name)):
                raise InvalidArgumentError(
                    f"{name} is {existing!r} in limits and {value!r} in TokenBudget; remove one"
                )
        gym.utils.RecordConstructorArgs.__init__(
            self,
            max_tokens=budget.max_tokens,
            reserve_tokens=budget.reserve_tokens,
            warnings=budget.warn_tokens,
            count=count,
            response_limit=budget.response_limit,
        )
        gym.Wrapper.__init__(self, env)
        core.limits = replace(core.limits, **fields)
