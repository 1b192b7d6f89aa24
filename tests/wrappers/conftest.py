"""Environments of the tiny task, closed after the test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import gymnasium as gym
import pytest

Env = gym.Env[Any, Any]


@pytest.fixture
def make(tiny_row: dict[str, Any]) -> Iterator[Callable[..., Env]]:
    """Makes an env in wrappers, from the inside out; named fields change the task."""
    with ExitStack() as closing:

        def make(*wrappers: Callable[[Env], Env], **fields: Any) -> Env:
            env: Env = gym.make("CodingRepair-v0", tasks=[tiny_row | fields], max_obs_tokens=64)
            closing.callback(env.close)
            for wrapper in wrappers:
                env = wrapper(env)
            return env

        yield make


@pytest.fixture
def env(make: Callable[..., Env]) -> Env:
    return make()
