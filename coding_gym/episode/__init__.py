"""One repair attempt: its config, transcript, limits, and the grade at its end."""

from coding_gym.episode.config import EpisodeConfig
from coding_gym.episode.episode import Episode, EpisodeSnapshot
from coding_gym.episode.limits import Limits
from coding_gym.episode.usage import Usage

__all__ = ["Episode", "EpisodeConfig", "EpisodeSnapshot", "Limits", "Usage"]
