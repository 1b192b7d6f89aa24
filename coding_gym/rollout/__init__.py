"""Playing episodes and keeping what happened."""

from coding_gym.rollout.play import play_episode
from coding_gym.trajectory_file import append_trajectory, read_trajectories

__all__ = ["append_trajectory", "play_episode", "read_trajectories"]
