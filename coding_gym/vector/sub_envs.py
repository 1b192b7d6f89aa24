"""The single envs of a vector env, created by ``gym.make``, each with its wrappers."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from coding_gym.arguments import check_arguments
from coding_gym.envs import ENV_ID, CodingRepairEnv
from coding_gym.errors import InvalidArgumentError

Env = gym.Env[Any, Any]
Wrap = Callable[[Env], Env]
WrapperEntry = Mapping[str, Any] | Wrap
"""A wrapper: ``{"name": "TokenBudget", "kwargs": {...}}``, or a callable from env to env."""

_FORM = '{"name": ..., "kwargs": {...}}'


def make_envs(
    num_envs: int, wrappers: Sequence[WrapperEntry], env_kwargs: Mapping[str, Any]
) -> list[Env]:
    """Returns envs with separate wrappers and with samplers that share all results.

    Args:
        num_envs: The number of envs.
        wrappers: The wrappers, the innermost first: ``{"name": ..., "kwargs": {...}}``, with
            optional ``kwargs``, or a callable that takes an env and returns an env.
        env_kwargs: Arguments of `CodingRepairEnv`.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument or an entry of ``wrappers`` cannot be
            used.
    """
    functions = [_wrap(entry) for entry in wrappers]
    envs: list[Env] = []
    try:
        for _ in range(num_envs):
            spec = deepcopy(gym.spec(ENV_ID))
            spec.kwargs = dict(env_kwargs)
            # Gymnasium's checker would repeat the same checks of the first step in each env.
            envs.append(gym.make(spec, disable_env_checker=True))
            for wrap in functions:
                envs[-1] = wrap(envs[-1])
            first_env, new_env = (cast("CodingRepairEnv", e.unwrapped) for e in (envs[0], envs[-1]))
            if new_env is not first_env:
                new_env.sampler.share(first_env.sampler)
    except BaseException:
        for env in envs:
            env.close()
        raise
    return envs


def _wrap(entry: Any) -> Wrap:
    """Returns the function that wraps an env as an entry of ``wrappers`` describes."""
    if callable(entry):
        return cast("Wrap", entry)
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise InvalidArgumentError(f"a wrapper must be {_FORM} or a callable, got {entry!r}")
    check_arguments("a wrapper", entry, ("name", "kwargs"))
    name, kwargs = entry["name"], dict(entry.get("kwargs", {}))
    try:
        wrapper: Any = load_env_creator(name if ":" in name else f"coding_gym.wrappers:{name}")
    except (ImportError, AttributeError) as error:
        raise InvalidArgumentError(
            f"{name!r} is not a wrapper: {error}; use a class of coding_gym.wrappers, or "
            "'module:Class'"
        ) from error
    return lambda env: cast("Env", wrapper(env, **deepcopy(kwargs)))
