"""An environment of the tiny task."""

import pytest
from episodes import MakeEnv

from coding_gym.envs.coding_repair import CodingRepairEnv


@pytest.fixture
def env(make_env: MakeEnv) -> CodingRepairEnv:
    return make_env(render_mode="ansi")
