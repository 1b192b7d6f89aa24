"""Vector environments: many episodes at once, in one process or on a Ray cluster."""

from coding_gym.vector.ray_vector_env import RayVectorEnv
from coding_gym.vector.vector_env import CodingRepairVectorEnv

__all__ = ["CodingRepairVectorEnv", "RayVectorEnv"]
