"""Vector envs of the tiny task, closed after the test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from coding_gym.vector import CodingRepairVectorEnv, make_vec


@pytest.fixture
def rows(tiny_row: dict[str, Any]) -> list[dict[str, Any]]:
    """Twelve tasks that differ in their ids only."""
    return [tiny_row | {"instance_id": f"shapes-{number}"} for number in range(12)]


@pytest.fixture
def make(rows: list[dict[str, Any]]) -> Iterator[Callable[..., CodingRepairVectorEnv]]:
    """Makes vector envs of those tasks."""
    with ExitStack() as closing:

        def make(num_envs: int, **kwargs: Any) -> CodingRepairVectorEnv:
            vec = make_vec(num_envs, **{"tasks": rows} | kwargs)
            closing.callback(vec.close)
            return vec

        yield make
