"""Playing episodes, keeping what happened, and playing it again."""

from coding_gym.rollout.play import play_episode
from coding_gym.rollout.replay import Replay, replay
from coding_gym.rollout.run_folder import RunFolder
from coding_gym.rollout.runner import Runner
from coding_gym.trajectory_file import append_trajectory, read_trajectories

__all__ = [
    "Replay",
    "RunFolder",
    "Runner",
    "append_trajectory",
    "play_episode",
    "read_trajectories",
    "replay",
]
