"""Runs of many episodes, and the folder of their records."""

from coding_gym.rollout.run_folder import RunFolder
from coding_gym.rollout.runner import Runner
from coding_gym.trajectory import read_trajectories, write_trajectory

__all__ = [
    "RunFolder",
    "Runner",
    "read_trajectories",
    "write_trajectory",
]
