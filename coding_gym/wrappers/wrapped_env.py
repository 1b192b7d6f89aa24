"""The env inside a wrapper: its core, its observation space, and the snapshot of a reset."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from coding_gym.envs import CodingRepairEnv
from coding_gym.envs.snapshot import OPTION, EnvSnapshot, checked
from coding_gym.errors import InvalidArgumentError

Wrapper = type[gym.Wrapper[Any, Any, Any, Any]]


def core_env(wrapper: Wrapper, env: gym.Env[Any, Any]) -> CodingRepairEnv:
    """Returns the `CodingRepairEnv` inside ``env``.

    Raises:
        InvalidArgumentError: The innermost env is another one.
    """
    core = getattr(env, "unwrapped", env)
    if not isinstance(core, CodingRepairEnv):
        raise InvalidArgumentError(
            f"{wrapper.__name__} wraps CodingRepair-v0, got {type(core).__name__}"
        )
    return core


def dict_space(wrapper: Wrapper, env: gym.Env[Any, Any]) -> spaces.Dict:
    """Returns the observation space of ``env``, to which ``wrapper`` adds keys.

    Raises:
        InvalidArgumentError: Another wrapper has replaced the Dict.
    """
    if not isinstance(env.observation_space, spaces.Dict):
        raise InvalidArgumentError(
            f"{wrapper.__name__} needs Dict observations, got {env.observation_space}; "
            "put wrappers that change the observation outside it"
        )
    return env.observation_space


def snapshot_in(options: Mapping[str, Any] | None) -> EnvSnapshot | None:
    """Returns the snapshot in options of ``reset``; None if they hold no snapshot.

    Raises:
        InvalidArgumentError: The value is not a snapshot.
    """
    if not isinstance(options, Mapping) or OPTION not in options:
        return None  # the env refuses other options
    return checked(options[OPTION])
