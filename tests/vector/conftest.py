"""Vector envs of the tiny task, closed after the test."""

from typing import Any

import pytest
from episodes import Closing, MakeVec

from coding_gym.vector import CodingRepairVectorEnv, make_vec


@pytest.fixture
def rows(tiny_row: dict[str, Any]) -> list[dict[str, Any]]:
    """Twelve tasks that differ in their ids only."""
    return [tiny_row | {"instance_id": f"shapes-{number}"} for number in range(12)]


@pytest.fixture
def make(rows: list[dict[str, Any]], closing: Closing) -> MakeVec:
    """Makes vector envs of those tasks."""
    return lambda num_envs, **kwargs: closing(make_vec(num_envs, **{"tasks": rows} | kwargs))


@pytest.fixture
def started(make: MakeVec) -> MakeVec:
    """Makes vector envs of those tasks, and begins their first episodes."""

    def begin(num_envs: int, **kwargs: Any) -> CodingRepairVectorEnv:
        vec = make(num_envs, **kwargs)
        vec.reset(seed=0)
        return vec

    return begin
