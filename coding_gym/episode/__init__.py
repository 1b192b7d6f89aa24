"""One repair attempt: transcript, limits, grading at its end."""

from coding_gym.episode.episode import Episode
from coding_gym.episode.limits import Limits
from coding_gym.episode.outcome import Outcome
from coding_gym.episode.snapshot import EpisodeSnapshot
from coding_gym.episode.usage import Usage

__all__ = ["Episode", "EpisodeSnapshot", "Limits", "Outcome", "Usage"]
