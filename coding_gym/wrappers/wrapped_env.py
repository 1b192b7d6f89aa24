"""The env inside a wrapper: its observation space and its snapshots."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from coding_gym.envs.snapshot import EnvSnapshot
from coding_gym.errors import InvalidArgumentError


def dict_space(wrapper: str, env: gym.Env[Any, Any]) -> spaces.Dict:
    """Returns the observation space of ``env``, for a wrapper that adds keys.

    Raises:
        InvalidArgumentError: A wrapper inside ``env`` has replaced the Dict space.
    """
    if not isinstance(env.observation_space, spaces.Dict):
        raise InvalidArgumentError(
            f"{wrapper} needs Dict observations, got {env.observation_space}; "
            "apply it before wrappers that change the observation space"
        )
    return env.observation_space


def state_in(options: Mapping[str, Any] | None, wrapper: gym.Wrapper[Any, Any, Any, Any]) -> Any:
    """Returns the state of a wrapper in the snapshot of a reset, or None.

    A state from a file has lists instead of tuples. The env checks the options.
    """
    snapshot = options.get("snapshot") if isinstance(options, Mapping) else None
    return snapshot.state_of(wrapper) if isinstance(snapshot, EnvSnapshot) else None
