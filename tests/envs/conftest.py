"""Environments of the tiny task."""

from pathlib import Path

import gymnasium as gym
import pytest
from episodes import Closing, Make, MakeEnv

from coding_gym.envs.coding_repair import CodingRepairEnv


@pytest.fixture
def env(make_env: MakeEnv) -> CodingRepairEnv:
    return make_env(render_mode="ansi")


@pytest.fixture
def make(rows: Path, closing: Closing) -> Make:
    """Returns a function that calls ``gym.make`` for the tasks in ``rows``."""
    return lambda **arguments: closing(gym.make("CodingRepair-v0", **{"tasks": rows} | arguments))
