"""Checks that wrappers share: of their order, of their spaces, and of snapshots to begin at."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from coding_gym.envs import CodingRepairEnv
from coding_gym.envs.chain import UNGRADED, class_names, layers
from coding_gym.envs.snapshot import OPTION, EnvSnapshot, checked
from coding_gym.errors import InvalidArgumentError

_REPLACES = {
    "MenuActions": "the action space",
    "TokenActions": "the action space",
    "TextObservation": "the observation",
    "TranscriptObservation": "the observation",
}


def check_order(
    wrapper: type[gym.Wrapper[Any, Any, Any, Any]],
    env: gym.Env[Any, Any],
    *,
    never_around: Mapping[str, str] | None = None,
) -> CodingRepairEnv:
    """Returns the env at the core of ``env``, if ``wrapper`` may be put around it.

    Args:
        wrapper: The class whose constructor asks.
        env: The env that it is to wrap.
        never_around: More wrappers that must not be inside, by class name, each with the reason
            and the way out.

    Raises:
        InvalidArgumentError: There is no `CodingRepairEnv` at the core, the same wrapper is inside
            already, or one that must not be inside is.
    """
    core = getattr(env, "unwrapped", env)
    if not isinstance(core, CodingRepairEnv):
        raise InvalidArgumentError(
            f"{wrapper.__name__} wraps CodingRepair-v0, got {type(core).__name__}"
        )
    replaced = _REPLACES.get(wrapper.__name__)
    alike = [name for name, what in _REPLACES.items() if what == replaced]
    refused = {
        **dict.fromkeys(alike, f"both replace {replaced}; keep one of the two"),
        wrapper.__name__: "once is enough; remove one of the two",
        **UNGRADED,
        **(never_around or {}),
    }
    for name in class_names(env):
        if name in refused:
            raise InvalidArgumentError(
                f"{wrapper.__name__} cannot be put around {name}: {refused[name]}"
            )
    return core


def dict_space(
    wrapper: type[gym.Wrapper[Any, Any, Any, Any]], env: gym.Env[Any, Any]
) -> spaces.Dict:
    """Returns the observation space of ``env``, to which ``wrapper`` will add keys.

    Raises:
        InvalidArgumentError: A wrapper inside has made something else of the Dict.
    """
    space = env.observation_space
    if isinstance(space, spaces.Dict):
        return space
    others = [e for e in layers(env) if not isinstance(e.observation_space, spaces.Dict)]
    name = type(others[-1]).__name__
    raise InvalidArgumentError(
        f"{wrapper.__name__} cannot be put around {name}: it needs Dict observations, got "
        f"{type(space).__name__}; put {name} outside"
    )


def snapshot_in(options: Mapping[str, Any] | None) -> EnvSnapshot | None:
    """Returns the snapshot at which options of ``reset`` let an episode begin, or None.

    Raises:
        InvalidArgumentError: It is something else.
    """
    if not isinstance(options, Mapping) or OPTION not in options:
        return None  # the env refuses other options
    return checked(options[OPTION])
