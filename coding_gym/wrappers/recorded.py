"""The wrappers that shape recorded rewards, as entries of a record."""

from typing import Any

import gymnasium as gym

from coding_gym.envs.chain import layers

_ROOM = "coding_gym.wrappers."
_KEEPS_REWARDS = (
    gym.ObservationWrapper,
    gym.ActionWrapper,
    gym.wrappers.OrderEnforcing,
    gym.wrappers.PassiveEnvChecker,
)


def reward_entries(env: gym.Env[Any, Any]) -> list[dict[str, Any]]:
    """Returns what in a chain shapes rewards, innermost first, as ``{"name": …, "kwargs": {…}}``.

    A wrapper of somebody else's has its name alone: it cannot be made again from a file.
    """
    entries: list[dict[str, Any]] = []
    for layer in layers(env):
        kind = type(layer)
        if not isinstance(layer, gym.Wrapper) or isinstance(layer, _KEEPS_REWARDS):
            continue
        if not kind.__module__.startswith(_ROOM):
            entries.append({"name": f"{kind.__module__}:{kind.__qualname__}"})
        elif hasattr(kind, "shaping_weight"):
            entries.append(
                {"name": kind.__name__, "kwargs": dict(getattr(layer, "_saved_kwargs", {}))}
            )
    return entries[::-1]
