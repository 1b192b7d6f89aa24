"""Runs of many episodes, and the folder that keeps them."""

from coding_gym.rollout.run_folder import RunFolder
from coding_gym.rollout.runner import Runner
from coding_gym.trajectory_file import append_trajectory, read_trajectories

__all__ = [
    "RunFolder",
    "Runner",
    "append_trajectory",
    "read_trajectories",
]
