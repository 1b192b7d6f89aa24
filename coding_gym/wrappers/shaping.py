"""What reward wrappers share: their weights, their place in a chain, their part of the reward.

A reward wrapper has a property ``shaping_weight``: the most by which its parts set two episodes
apart. All weights of a chain sum to less than 1, so that no episode that leaves the bug unresolved
earns as much as one that resolves it. ``part_names`` are its parts of ``info["reward_parts"]``, or
how they begin; no two wrappers of a chain share one.
"""

import math
from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.core import ObsType

from coding_gym.envs import CodingRepairEnv
from coding_gym.envs.chain import layers
from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.grade import Grade
from coding_gym.rewards import Composite, Sample
from coding_gym.trajectory import StopReason
from coding_gym.wrappers.chain import check_order

Step = tuple[ObsType, SupportsFloat, bool, bool, dict[str, Any]]
"""What ``step`` returns: observation, reward, terminated, truncated, info."""

_NEVER_AROUND = {
    "RecordTrajectory": "it records the rewards that come from inside it; put it around all reward"
    " wrappers"
}


def check_shaping(
    wrapper: type[gym.Wrapper[Any, Any, Any, Any]],
    env: gym.Env[Any, Any],
    weight: Any,
    part: str,
) -> tuple[CodingRepairEnv, float]:
    """Returns the env at the core and the weight, if a reward wrapper may be put around ``env``.

    Args:
        wrapper: The class whose constructor asks.
        env: What it was given.
        weight: The most that it will add to the reward.
        part: The name of what it adds.

    Raises:
        InvalidArgumentError: The weight is not above 0 and below 1, or `check_chain` refuses.
    """
    core = check_order(wrapper, env, never_around=_NEVER_AROUND)
    is_number = not isinstance(weight, bool) and isinstance(weight, Real)
    if not is_number or not 0 < weight < 1:
        way_out = "; leave the wrapper out" if is_number and weight == 0 else ""
        raise InvalidArgumentError(
            f"weight must be a number above 0 and below 1, got {weight!r}{way_out}"
        )
    check_chain(wrapper, env, float(weight), (part,))
    return core, float(weight)


def check_chain(
    wrapper: type[gym.Wrapper[Any, Any, Any, Any]],
    env: gym.Env[Any, Any],
    most: float,
    parts: Collection[str],
) -> CodingRepairEnv:
    """Returns the env at the core, if what is inside leaves room for a reward wrapper.

    Args:
        wrapper: The class whose constructor asks.
        env: What it was given.
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


def final_grade(core: CodingRepairEnv, step: Step[Any]) -> Grade | None:
    """Returns the grade, if this step ended an episode that was graded, else None.

    There is none where our side failed (``info["mask_sample"]``): such samples are not rewarded.
    """
    _, _, terminated, truncated, info = step
    if not (terminated or truncated) or info["mask_sample"]:
        return None
    return core.episode.grade


def final_parts(core: CodingRepairEnv, step: Step[Any], composite: Composite) -> dict[str, float]:
    """Returns what the rewards of a composite add, if this step ended an episode with a grade."""
    grade = final_grade(core, step)
    if grade is None:
        return {}
    episode = core.episode
    turns = episode.turns
    if episode.stop_reason is StopReason.STOPPED:  # the last is the trainer's, not the policy's
        turns = turns[:-1]
    sample = Sample.of(episode.task, grade, core.patch(), turns, core.toolset.schemas)
    return composite.parts(sample)


def add_part(step: Step[ObsType], name: str, value: float) -> Step[ObsType]:
    """Returns the step with ``value`` added to its reward, and to its reward parts as ``name``."""
    return add_parts(step, {name: value})


def add_parts(step: Step[ObsType], values: Mapping[str, float]) -> Step[ObsType]:
    """Returns the step with several values added to its reward, and to its reward parts."""
    observation, reward, terminated, truncated, info = step
    info = {**info, "reward_parts": {**info["reward_parts"], **values}}
    return observation, float(reward) + sum(values.values()), terminated, truncated, info


def check_task(
    wrapper: type[gym.Wrapper[Any, Any, Any, Any]], core: CodingRepairEnv, problem: str
) -> None:
    """Refuses a task that a reward wrapper cannot do with.

    Args:
        wrapper: The wrapper's class.
        core: The env at the core, just reset.
        problem: Why not, or "".

    Raises:
        InvalidTaskError: There is a problem.
    """
    if problem:
        raise InvalidTaskError(
            f"task {core.task.task_id} cannot be rewarded by {wrapper.__name__}: {problem}; "
            "leave the wrapper out, or such tasks (task_ids)"
        )
