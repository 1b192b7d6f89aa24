"""Episodes of the tiny task, without Gymnasium, closed after the test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from coding_gym.episode import Episode, EpisodeFactory
from coding_gym.task import Task
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import get_toolset


@pytest.fixture
def make(tiny_row: dict[str, Any]) -> Iterator[Callable[..., Episode]]:
    """Makes an episode; fields given as ``row`` change the task."""
    with ExitStack() as closing:

        def make(row: dict[str, Any] | None = None, **arguments: Any) -> Episode:
            task = Task.from_row(tiny_row | (row or {}))
            usual = {"toolset": get_toolset("nano"), "tokenizer": get_tokenizer()}
            episode = EpisodeFactory(tasks=(task,), **usual | arguments).create(task)
            closing.callback(episode.close)
            return episode

        yield make
