"""An environment of the tiny task."""

from collections.abc import Iterator
from typing import Any

import pytest

from coding_gym.envs.coding_repair import CodingRepairEnv


@pytest.fixture
def env(tiny_row: dict[str, Any]) -> Iterator[CodingRepairEnv]:
    env = CodingRepairEnv(tasks=[tiny_row], render_mode="ansi")
    yield env
    env.close()
