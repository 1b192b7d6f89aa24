"""Vector environments: many episodes at once in one process."""

from coding_gym.vector.vector_env import CodingRepairVectorEnv, make_vec

__all__ = ["CodingRepairVectorEnv", "make_vec"]
