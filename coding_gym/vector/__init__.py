"""Vector environments: many episodes at once in one process."""

from coding_gym.vector.making import make_vec
from coding_gym.vector.vector_env import CodingRepairVectorEnv

__all__ = ["CodingRepairVectorEnv", "make_vec"]
