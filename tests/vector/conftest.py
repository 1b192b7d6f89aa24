"""Vector envs of the tiny task, closed after the test."""

from typing import Any

import pytest
from episodes import Closing, MakeVec

from coding_gym.vector import CodingRepairVectorEnv


@pytest.fixture
def rows(tiny_row: dict[str, Any]) -> list[dict[str, Any]]:
    """Twelve tasks that differ in their ids only."""
    return [tiny_row | {"instance_id": f"shapes-{number}"} for number in range(12)]


@pytest.fixture
def make(rows: list[dict[str, Any]], closing: Closing) -> MakeVec:
    """Returns a function that makes vector envs of the tasks in ``rows``."""
    return lambda num_envs, **kwargs: closing(
        CodingRepairVectorEnv(num_envs, **{"tasks": rows} | kwargs)
    )


@pytest.fixture
def started(make: MakeVec) -> MakeVec:
    """Returns a function that makes vector envs and starts their first episodes."""

    def make_and_reset(num_envs: int, **kwargs: Any) -> CodingRepairVectorEnv:
        vec = make(num_envs, **kwargs)
        vec.reset(seed=0)
        return vec

    return make_and_reset
