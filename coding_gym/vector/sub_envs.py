"""The single envs of a vector env, made as ``gym.make`` makes them from a spec."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

import gymnasium as gym

from coding_gym.arguments import check_arguments
from coding_gym.envs import CodingRepairEnv
from coding_gym.envs.chain import check_ends_are_graded
from coding_gym.envs.registration import ENV_ID
from coding_gym.errors import InvalidArgumentError
from coding_gym.vector.wrapper_entries import wrapper_specs

_ELSEWHERE = {"n_envs": "num_envs", "env_wrappers": "wrappers"}


def make_envs(
    num_envs: int,
    wrappers: Sequence[Mapping[str, Any]],
    env_kwargs: Mapping[str, Any],
    group_size: int = 1,
) -> list[gym.Env[Any, Any]]:
    """Returns envs, each wrapped by wrappers of its own; their samplers learn from all of them.

    Args:
        num_envs: How many.
        wrappers: ``{"name": ..., "kwargs": {...}}``, innermost first.
        env_kwargs: Arguments of `CodingRepairEnv`.
        group_size: How many of them are to have the same tasks.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument or an entry of ``wrappers`` cannot be
            used.
    """
    check_env_arguments(env_kwargs)
    specs = wrapper_specs(wrappers)
    envs: list[gym.Env[Any, Any]] = []
    try:
        for _ in range(num_envs):
            spec = deepcopy(gym.spec(ENV_ID))
            spec.kwargs = dict(env_kwargs)
            spec.additional_wrappers = deepcopy(specs)
            # The checker would look at the first step of each env; it changes nothing.
            envs.append(gym.make(spec, disable_env_checker=True))
            check_ends_are_graded(envs[-1])
            _join(envs[0], envs[-1], group_size)
    except BaseException:
        for env in envs:
            env.close()
        raise
    return envs


def _join(first: gym.Env[Any, Any], other: gym.Env[Any, Any], group_size: int) -> None:
    """Lets two envs' samplers learn from each other."""
    one, two = cast("CodingRepairEnv", first.unwrapped), cast("CodingRepairEnv", other.unwrapped)
    if group_size > 1 and two.follows_results:
        raise InvalidArgumentError(
            "a sampler that follows results may give the envs of a group different tasks; use "
            "another one with group_size, or draw tasks by get_sampler and name them in reset"
        )
    if one is not two:
        two.share_results(one)


def check_env_arguments(given: Iterable[str], more: Sequence[str] = ()) -> None:
    """Looks at the names of keyword arguments.

    Args:
        given: The names.
        more: Names that are known besides the arguments of `CodingRepairEnv`.

    Raises:
        InvalidArgumentError: One is not known.
    """
    if "max_episode_steps" in given:
        raise InvalidArgumentError(
            "max_episode_steps would end episodes without a grade; use max_turns"
        )
    own = list(inspect.signature(CodingRepairEnv).parameters)
    check_arguments(ENV_ID, given, [*more, *own], elsewhere=_ELSEWHERE if more else None)
