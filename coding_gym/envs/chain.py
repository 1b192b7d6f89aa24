"""The walk through a chain of wrappers."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym


def layers(env: gym.Env[Any, Any]) -> Iterator[gym.Env[Any, Any]]:
    """Yields ``env`` and what it wraps, from the outside in."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
    yield env
