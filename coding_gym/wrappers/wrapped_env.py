"""Helpers of wrappers: the inner observation space, and the snapshot of a reset."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from pydantic import TypeAdapter, ValidationError

from coding_gym.envs.snapshot import EnvSnapshot
from coding_gym.errors import InvalidArgumentError
from coding_gym.json_record import first_problem


def dict_space(wrapper: str, env: gym.Env[Any, Any]) -> spaces.Dict:
    """Returns the observation space of ``env``, for a wrapper that adds keys.

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


def state_in(
    options: Mapping[str, Any] | None, wrapper: gym.Wrapper[Any, Any, Any, Any], kind: Any
) -> Any:
    """Returns the state of a wrapper in the snapshot of a reset, or None; call it before the reset.

    Args:
        options: The options of ``reset``.
        wrapper: The wrapper.
        kind: The type of its state, which has another form in a file.

    Raises:
        InvalidArgumentError: The state is not of that type.
    """
    snapshot = snapshot_in(options)
    state = None if snapshot is None else snapshot.state_of(wrapper)
    if state is None:
        return None
    try:
        return TypeAdapter(kind).validate_python(state)
    except ValidationError as error:
        _, problem = first_problem(error)
    raise InvalidArgumentError(f"the snapshot's state of {type(wrapper).__name__}: {problem}")
