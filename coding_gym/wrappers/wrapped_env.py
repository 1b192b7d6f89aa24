"""What wrappers read: the observation space inside, and the snapshot of a reset."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from coding_gym.envs.snapshot import EnvSnapshot
from coding_gym.errors import InvalidArgumentError


def dict_space(wrapper: str, env: gym.Env[Any, Any]) -> spaces.Dict:
    """Returns the observation space of ``env``, to which ``wrapper`` adds keys.

    Raises:
        InvalidArgumentError: Another wrapper has replaced the Dict.
    """
    if not isinstance(env.observation_space, spaces.Dict):
        raise InvalidArgumentError(
            f"{wrapper} needs Dict observations, got {env.observation_space}; "
            "put wrappers that change the observation outside it"
        )
    return env.observation_space


def snapshot_in(options: Mapping[str, Any] | None) -> EnvSnapshot | None:
    """Returns the snapshot in options of ``reset``, or None; the env refuses other values."""
    value = options.get("snapshot") if isinstance(options, Mapping) else None
    return value if isinstance(value, EnvSnapshot) else None
