"""Runs of many episodes, and the folder of their records."""

from coding_gym.rollout.run_folder import RunFolder
from coding_gym.rollout.runner import Runner

__all__ = ["RunFolder", "Runner"]
