"""Episodes of the tiny task, without Gymnasium, closed after the test."""

from collections.abc import Callable
from typing import Any

import pytest
from episodes import Closing

from coding_gym.episode import Episode, EpisodeConfig
from coding_gym.tasks.task_row import read_task


@pytest.fixture
def make(tiny_row: dict[str, Any], closing: Closing) -> Callable[..., Episode]:
    """Returns a function that makes an episode; fields of ``row`` change the task."""

    def make(row: dict[str, Any] | None = None, **arguments: Any) -> Episode:
        task = read_task(tiny_row | (row or {}))
        episode: Episode = closing(Episode(task, EpisodeConfig(**arguments)))
        return episode

    return make


@pytest.fixture
def episode(make: Callable[..., Episode]) -> Episode:
    """A started episode."""
    episode = make()
    episode.start()
    return episode
