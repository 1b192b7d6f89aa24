"""What may be put around what: checks that every wrapper of this package makes at construction."""

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym

from coding_gym.envs import CodingRepairEnv
from coding_gym.errors import InvalidArgumentError

# Wrappers of Gymnasium that no wrapper of ours may be put around.
_NEVER_INSIDE = {
    "TimeLimit": "it ends an episode without a grade; use max_turns of CodingRepair-v0",
    "Autoreset": "it hides the end of an episode; use a vector env",
}


def layers(env: gym.Env[Any, Any]) -> Iterator[gym.Env[Any, Any]]:
    """Yields ``env`` and what it wraps, from the outside in."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
    yield env


def check_order(
    wrapper: type[gym.Wrapper[Any, Any, Any, Any]],
    env: gym.Env[Any, Any],
    *,
    never_around: Mapping[str, str] | None = None,
) -> CodingRepairEnv:
    """Returns the env at the core of ``env``, if ``wrapper`` may be put around it.

    Args:
        wrapper: The class whose constructor asks.
        env: What it was given.
        never_around: Names of wrapper classes that must not be inside, each with the reason and
            the way out.

    Raises:
        InvalidArgumentError: There is no `CodingRepairEnv` at the core, the same wrapper is inside
            already, or one that must not be inside is.
    """
    refused = {
        wrapper.__name__: "once is enough; remove one of the two",
        **_NEVER_INSIDE,
        **(never_around or {}),
    }
    for layer in layers(env):
        for name in (kind.__name__ for kind in type(layer).__mro__):  # subclasses count too
            if isinstance(layer, gym.Wrapper) and name in refused:
                raise InvalidArgumentError(
                    f"{wrapper.__name__} cannot be put around {name}: {refused[name]}"
                )
    core = env.unwrapped
    if not isinstance(core, CodingRepairEnv):
        raise InvalidArgumentError(
            f"{wrapper.__name__} wraps CodingRepair-v0, got {type(core).__name__}"
        )
    return core
