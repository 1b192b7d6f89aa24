"""A budget of tokens per episode, with nano-agent's warnings."""

from dataclasses import asdict, replace

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import at_least, at_least_one
from coding_gym.envs.snapshot import core_env
from coding_gym.episode.limits import Limits


class TokenBudget(gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs):
    """Truncates an episode when its tokens are spent, after warnings.

    The wrapper replaces the token limits of ``env.unwrapped``; from the next `reset` the new limits
    apply to that env even if the wrapper is removed. The env's tokenizer counts all ids that
    `TranscriptObservation` returns in a running episode: prompt, replies and observations, with
    roles, control tokens, tool schemas and the generation prompt; a `coding_gym.Completion` counts
    by its sampled ids. ``info["budget"]["tokens"]`` is the remaining number, reserve included.

    The episode ends (stop reason ``max_tokens``) as soon as ``reserve_tokens`` or fewer are left,
    also between the calls of one action; the first call of an overlong reply still runs. If the
    prompt alone exceeds the budget, the first step ends the episode without running its action.
    A warning precedes each tool result when fewer than 3,000 tokens are left, and another warning
    below 1,500. The wording of the warnings and the defaults are those of nano-agent 5.0.0.

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not.
        max_tokens: Maximum number of tokens per episode.
        reserve_tokens: Remaining number of tokens at which the episode ends.
        warnings: Whether results of tools contain the warnings.

    Raises:
        InvalidArgumentError: A number is invalid, the innermost env is not ``CodingRepair-v0``, or
            its tokenizer has no chat template.
    """

    def __init__(
        self,
        env: gym.Env[ObsType, ActType],
        max_tokens: int = 8192,
        reserve_tokens: int = 600,
        warnings: bool = True,
    ) -> None:
        core = core_env("TokenBudget", env)
        fields = {
            "max_tokens": at_least_one("max_tokens", max_tokens),  # `Limits` accepts None
            "reserve_tokens": at_least(0, "reserve_tokens", reserve_tokens),
            "warn_tokens": warnings,
        }
        limits = Limits.parse({**asdict(core.config.limits), **fields})
        core.config = replace(core.config, limits=limits)
        gym.utils.RecordConstructorArgs.__init__(
            self,
            max_tokens=limits.max_tokens,
            reserve_tokens=limits.reserve_tokens,
            warnings=limits.warn_tokens,
        )
        gym.Wrapper.__init__(self, env)
