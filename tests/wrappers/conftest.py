"""Environments of the tiny task in wrappers, closed after the test."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from episodes import Closing, Env


@pytest.fixture
def make(tiny_row: dict[str, Any], closing: Closing) -> Callable[..., Env]:
    """Makes an env in wrappers, from the inside out; named fields change the task."""

    def make(*wrappers: Callable[[Env], Env], **fields: Any) -> Env:
        env: Env = gym.make("CodingRepair-v0", tasks=[tiny_row | fields], max_obs_tokens=64)
        closing(env)
        for wrapper in wrappers:
            env = wrapper(env)
        return env

    return make


@pytest.fixture
def env(make: Callable[..., Env]) -> Env:
    return make()
