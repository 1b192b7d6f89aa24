"""One repair attempt: its factory, transcript, limits, and the grade at its end."""

from coding_gym.episode.episode import Episode, EpisodeSnapshot, Outcome
from coding_gym.episode.factory import EpisodeFactory
from coding_gym.episode.limits import Limits
from coding_gym.episode.usage import Usage

__all__ = ["Episode", "EpisodeFactory", "EpisodeSnapshot", "Limits", "Outcome", "Usage"]
