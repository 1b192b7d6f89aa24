"""The doors to the vector env: our helper, and the entry point that Gymnasium calls."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium as gym

from coding_gym.envs.registration import ENV_ID
from coding_gym.vector.vector_env import CodingRepairVectorEnv, check_vector_arguments


def make_vec(
    num_envs: int = 1, *, wrappers: Sequence[Mapping[str, Any]] = (), **kwargs: Any
) -> CodingRepairVectorEnv:
    """Returns a vector env of ``CodingRepair-v0`` with a spec that makes it again.

    The same as ``gym.make_vec("CodingRepair-v0", num_envs=..., env_wrappers=[...], ...)``:
    Gymnasium keeps the name ``wrappers`` for itself, and refuses it for vector envs that are not
    its own.

    Args:
        num_envs: How many envs.
        wrappers: ``{"name": "TokenBudget", "kwargs": {...}}`` for each wrapper of each env, the
            innermost first; the name is that of a class in `coding_gym.wrappers`, or
            ``"module:Class"``.
        **kwargs: Further arguments of `CodingRepairVectorEnv` and of `CodingRepairEnv`.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument cannot be used.
    """
    check_vector_arguments(kwargs)
    if wrappers:  # a tuple would not come back from JSON as one
        kwargs["env_wrappers"] = list(wrappers) if isinstance(wrappers, tuple) else wrappers
    env = gym.make_vec(ENV_ID, num_envs=num_envs, vectorization_mode="vector_entry_point", **kwargs)
    return cast("CodingRepairVectorEnv", env)


def vector_entry_point(
    num_envs: int, *, env_wrappers: Sequence[Mapping[str, Any]] = (), **kwargs: Any
) -> CodingRepairVectorEnv:
    """Returns the vector env; Gymnasium calls this with what ``gym.make_vec`` was given.

    Args:
        num_envs: How many envs.
        env_wrappers: ``wrappers`` of `make_vec`, under a name that Gymnasium lets through.
        **kwargs: Further arguments of `CodingRepairVectorEnv` and of `CodingRepairEnv`.
    """
    return CodingRepairVectorEnv(num_envs, wrappers=env_wrappers, **kwargs)
