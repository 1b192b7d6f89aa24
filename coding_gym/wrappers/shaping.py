"""What reward wrappers share: their weights, their place in a chain, their part of the reward.

A reward wrapper has a property ``shaping_weight`` and adds at most that much, once, to the reward
of the step that ends an episode. All weights of a chain sum to less than 1, so that no episode that
leaves the bug unresolved earns as much as one that resolves it.
"""

import math
from numbers import Real
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.core import ObsType

from coding_gym.envs import CodingRepairEnv
from coding_gym.envs.chain import layers
from coding_gym.errors import InvalidArgumentError
from coding_gym.grade import Grade
from coding_gym.wrappers.chain import check_order

Step = tuple[ObsType, SupportsFloat, bool, bool, dict[str, Any]]
"""What ``step`` returns: observation, reward, terminated, truncated, info."""

_NEVER_AROUND = {
    "RecordTrajectory": "it records the rewards that come from inside it; put it around all reward"
    " wrappers"
}


def check_shaping(
    wrapper: type[gym.Wrapper[Any, Any, Any, Any]], env: gym.Env[Any, Any], weight: Any
) -> tuple[CodingRepairEnv, float]:
    """Returns the env at the core and the weight, if a reward wrapper may be put around ``env``.

    Args:
        wrapper: The class whose constructor asks.
        env: What it was given.
        weight: The most that it will add to the reward.

    Raises:
        InvalidArgumentError: The weight is not above 0 and below 1, the weights of the chain sum to
            1 or more, or the order makes no sense (see `check_order`).
    """
    core = check_order(wrapper, env, never_around=_NEVER_AROUND)
    is_number = not isinstance(weight, bool) and isinstance(weight, Real)
    if not is_number or not 0 < float(weight) < 1:
        way_out = "; leave the wrapper out" if is_number and weight == 0 else ""
        raise InvalidArgumentError(
            f"weight must be a number above 0 and below 1, got {weight!r}{way_out}"
        )
    inside = [(type(e).__name__, getattr(e, "shaping_weight", 0.0)) for e in layers(env)]
    weights = [(wrapper.__name__, float(weight)), *((n, w) for n, w in inside if w)]
    total = math.fsum(w for _, w in weights)
    if total >= 1:
        named = ", ".join(f"{name} {each:g}" for name, each in weights)
        raise InvalidArgumentError(
            "the weights of all reward wrappers must sum to less than 1, so that nothing earns more"
            f" than a resolved bug, got {total:g} ({named}); lower some of them"
        )
    return core, float(weight)


def final_grade(core: CodingRepairEnv, step: Step[Any]) -> Grade | None:
    """Returns the grade, if this step ended an episode that was graded, else None.

    There is none where our side failed (``info["mask_sample"]``): such samples are not rewarded.
    """
    _, _, terminated, truncated, info = step
    if not (terminated or truncated) or info["mask_sample"]:
        return None
    return core.episode.grade


def add_part(step: Step[ObsType], name: str, value: float) -> Step[ObsType]:
    """Returns the step with ``value`` added to its reward, and to its reward parts as ``name``."""
    observation, reward, terminated, truncated, info = step
    parts = {**info["reward_parts"], name: value}
    info = {**info, "reward_parts": parts}
    return observation, float(reward) + value, terminated, truncated, info
