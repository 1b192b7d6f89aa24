"""Types of environments and of the fixtures that make them and close them after the test."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from coding_gym.envs import CodingRepairEnv
from coding_gym.vector import CodingRepairVectorEnv

Env = gym.Env[Any, Any]
Closing = Callable[[Any], Any]
MakeEnv = Callable[..., CodingRepairEnv]
MakeVec = Callable[..., CodingRepairVectorEnv]
