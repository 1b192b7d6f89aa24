"""Checks that reward wrappers share, and the parts that they add.

``shaping_weight`` of a reward wrapper is the most by which its parts set two episodes apart. All
weights of a chain sum to less than 1, so that an unresolved episode earns less than a resolved
one. ``part_names`` are its keys of ``info["reward_parts"]``, or their beginnings; no two wrappers
of a chain share one.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.core import ObsType

from coding_gym.arguments import is_number
from coding_gym.envs import CodingRepairEnv
from coding_gym.envs.chain import layers
from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.wrappers.chain import check_order

Step = tuple[ObsType, SupportsFloat, bool, bool, dict[str, Any]]
"""The values of ``step``: observation, reward, terminated, truncated, info."""

Wrapper = type[gym.Wrapper[Any, Any, Any, Any]]

_NEVER_AROUND = {
    "RecordTrajectory": "it records the rewards that come from inside it; put it around all reward"
    " wrappers"
}


def check_weight(weight: Any) -> float:
    """Returns the weight of a reward wrapper.

    Raises:
        InvalidArgumentError: It is not above 0 and below 1.
    """
    if not is_number(weight) or not 0 < weight < 1:
        way_out = "; leave the wrapper out" if is_number(weight) and weight == 0 else ""
        raise InvalidArgumentError(
            f"weight must be a number above 0 and below 1, got {weight!r}{way_out}"
        )
    return float(weight)


def check_chain(
    wrapper: Wrapper, env: gym.Env[Any, Any], most: float, parts: Collection[str]
) -> CodingRepairEnv:
    """Returns the env at the core, if a reward wrapper may be put around ``env``.

    Args:
        wrapper: The class whose constructor asks.
        env: The env that it is to wrap.
        most: By how much its parts may set two episodes apart.
        parts: The names of its parts.

    Raises:
        InvalidArgumentError: The weights of the chain sum to 1 or more, another wrapper has a part
            of the same name, or the order makes no sense (see `check_order`).
    """
    core = check_order(wrapper, env, never_around=_NEVER_AROUND)
    for layer in layers(env):
        shared = sorted(set(parts) & set(getattr(layer, "part_names", ())))
        if shared:
            raise InvalidArgumentError(
                f"{wrapper.__name__} cannot be put around {type(layer).__name__}: both have the "
                f"part {shared[0]!r}; leave it out of one of them"
            )
    inside = [(type(e).__name__, getattr(e, "shaping_weight", 0.0)) for e in layers(env)]
    weights = [(wrapper.__name__, most), *((n, w) for n, w in inside if w)]
    total = math.fsum(w for _, w in weights)
    if total >= 1:
        named = ", ".join(f"{name} {each:g}" for name, each in weights)
        raise InvalidArgumentError(
            "the weights of all reward wrappers must sum to less than 1, so that nothing earns more"
            f" than a resolved bug, got {total:g} ({named}); lower some of them"
        )
    return core


def check_task(wrapper: Wrapper, core: CodingRepairEnv, problem: str) -> None:
    """Refuses the task of an env that was just reset, where there is a problem.

    Raises:
        InvalidTaskError: ``problem`` says why the wrapper cannot reward the task.
    """
    if problem:
        raise InvalidTaskError(
            f"task {core.task.task_id} cannot be rewarded by {wrapper.__name__}: {problem}; "
            "leave the wrapper out, or such tasks (task_ids)"
        )


def add_parts(step: Step[ObsType], values: Mapping[str, float]) -> Step[ObsType]:
    """Returns the step with several values added to its reward, and to its reward parts."""
    observation, reward, terminated, truncated, info = step
    info = {**info, "reward_parts": {**info["reward_parts"], **values}}
    return observation, float(reward) + sum(values.values()), terminated, truncated, info
