"""Rewards as pure functions of a patch, a grade or turns."""

from coding_gym.rewards.passing import fraction, progress
from coding_gym.rewards.similarity import patch_similarity

__all__ = ["fraction", "patch_similarity", "progress"]
