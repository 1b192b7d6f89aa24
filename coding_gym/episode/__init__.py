"""One repair attempt: transcript, limits, grading at its end."""

from coding_gym.episode.episode import Episode
from coding_gym.episode.limits import Limits, Usage
from coding_gym.episode.outcome import Outcome
from coding_gym.episode.snapshot import EpisodeSnapshot

__all__ = ["Episode", "EpisodeSnapshot", "Limits", "Outcome", "Usage"]
