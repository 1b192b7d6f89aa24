"""The single envs of a vector env, made as ``gym.make`` makes them from a spec."""

import importlib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import WrapperSpec

from coding_gym.arguments import unknown_name
from coding_gym.envs.registration import ENV_ID
from coding_gym.errors import InvalidArgumentError

WRAPPERS = "coding_gym.wrappers"


def make_envs(
    num_envs: int, wrappers: Sequence[Mapping[str, Any]], env_kwargs: Mapping[str, Any]
) -> list[gym.Env[Any, Any]]:
    """Returns envs, each wrapped by wrappers of its own.

    Args:
        num_envs: How many.
        wrappers: ``{"name": ..., "kwargs": {...}}``, innermost first.
        env_kwargs: Arguments of `CodingRepairEnv`.

    Raises:
        InvalidArgumentError, UnknownNameError: An entry of ``wrappers`` cannot be used.
        TypeError: `CodingRepairEnv` or a wrapper has no such argument.
    """
    if "max_episode_steps" in env_kwargs:
        raise InvalidArgumentError(
            "max_episode_steps would end episodes without a grade; use max_turns"
        )
    if not isinstance(wrappers, list | tuple):
        raise InvalidArgumentError(f"wrappers must be a list, got {wrappers!r}")
    envs: list[gym.Env[Any, Any]] = []
    try:
        for _ in range(num_envs):
            spec = deepcopy(gym.spec(ENV_ID))
            spec.kwargs = dict(env_kwargs)
            spec.additional_wrappers = tuple(_wrapper_spec(entry) for entry in wrappers)
            # The checker would look at the first step of each env; it changes nothing.
            envs.append(gym.make(spec, disable_env_checker=True))
    except BaseException:
        for env in envs:
            env.close()
        raise
    return envs


def _wrapper_spec(entry: Any) -> WrapperSpec:
    if not isinstance(entry, Mapping) or not {"name"} <= entry.keys() <= {"name", "kwargs"}:
        raise InvalidArgumentError(
            f'a wrapper is given as {{"name": ..., "kwargs": {{...}}}}, got {entry!r}'
        )
    name, kwargs = entry["name"], entry.get("kwargs", {})
    if not isinstance(name, str) or not isinstance(kwargs, Mapping):
        raise InvalidArgumentError(f"a wrapper's name is a text, its kwargs a dict, got {entry!r}")
    path, _, last = name.rpartition(":")
    path = path or WRAPPERS
    _check_exists(path, last)
    return WrapperSpec(name=last, entry_point=f"{path}:{last}", kwargs=deepcopy(dict(kwargs)))


def _check_exists(path: str, name: str) -> None:
    """Gymnasium's own errors would not say what there is."""
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        raise InvalidArgumentError(
            f"the wrapper {path}:{name} cannot be imported: {error}; a wrapper is named by its "
            f"class in {WRAPPERS}, or as 'module:Class'"
        ) from error
    if not hasattr(module, name):
        raise unknown_name("wrapper", name, getattr(module, "__all__", vars(module)))
