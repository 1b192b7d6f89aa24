"""Which snapshots an episode refuses, and what becomes of one that it cannot open."""

from collections.abc import Callable
from unittest import mock

import pytest
from episodes import SUBMIT

from coding_gym.episode import Episode
from coding_gym.errors import EpisodeError, SandboxError
from coding_gym.trajectory import StopReason

Make = Callable[..., Episode]


def test_an_episode_that_lost_its_sandbox_has_no_snapshot(make: Make) -> None:
    lost = make()
    lost.start()
    lost.discard_sandbox(SandboxError("it burnt down"))
    with pytest.raises(EpisodeError):
        lost.snapshot()


def test_snapshots_restore_only_into_new_episodes_of_their_task(
    episode: Episode, make: Make
) -> None:
    snapshot = episode.snapshot()
    with pytest.raises(EpisodeError):
        episode.restore(snapshot)
    with pytest.raises(EpisodeError):
        make(row={"instance_id": "another"}).restore(snapshot)


def test_a_branch_without_sandbox_is_stillborn(
    episode: Episode, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = episode.snapshot()
    fail = mock.Mock(side_effect=SandboxError("no memory"))
    monkeypatch.setattr("coding_gym.episode.config.open_sandbox", fail)
    branch = make()
    branch.restore(snapshot)
    branch.step(SUBMIT)
    assert branch.stop_reason is StopReason.SANDBOX_ERROR
    assert (branch.error, fail.call_count) == ("no memory", 2)
