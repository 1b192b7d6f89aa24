"""Chains of wrappers: the walk through one, and what none may hold."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym

from coding_gym.errors import InvalidArgumentError

UNGRADED = {
    "TimeLimit": "it counts the turns a second time; use max_turns of CodingRepair-v0",
    "Autoreset": "it hides the end of an episode; use a vector env",
}
"""Wrappers of Gymnasium that spoil an episode's end, each with why, and the way out."""


def layers(env: gym.Env[Any, Any]) -> Iterator[gym.Env[Any, Any]]:
    """Yields ``env`` and what it wraps, from the outside in."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
    yield env


def class_names(env: gym.Env[Any, Any]) -> Iterator[str]:
    """Yields the names of the classes of all wrappers in a chain, and of what they inherit from."""
    for layer in layers(env):
        if isinstance(layer, gym.Wrapper):
            yield from (kind.__name__ for kind in type(layer).__mro__)


def check_ends_are_graded(env: gym.Env[Any, Any]) -> None:
    """Refuses a chain in which a wrapper would end episodes without a grade, or hide the end."""
    for name in class_names(env):
        if name in UNGRADED:
            raise InvalidArgumentError(f"{name} cannot wrap CodingRepair-v0: {UNGRADED[name]}")
