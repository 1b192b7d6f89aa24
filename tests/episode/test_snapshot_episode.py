"""Which snapshots an episode refuses, and what becomes of one that it cannot open."""

from collections.abc import Callable
from unittest import mock

import pytest
from episodes import SUBMIT, call, shell

from coding_gym.episode import Episode, lifecycle
from coding_gym.errors import EpisodeError, SandboxError
from coding_gym.trajectory import StopReason

Make = Callable[..., Episode]


def test_a_branch_begins_with_the_snapshots_usage_and_chat(episode: Episode, make: Make) -> None:
    episode.step(shell("true"))
    moment = episode.snapshot()
    episode.step(shell("true"))
    branch = make()
    branch.restore(moment)
    assert (branch.usage, branch.turns) == (moment.usage, moment.turns)
    assert branch.messages == episode.messages[:4]
    assert branch.usage.turns == branch.info()["turn"] == 1


def test_edits_after_a_snapshot_do_not_change_it(make: Make) -> None:
    def edit(command: str, **arguments: str) -> str:
        return call("str_replace_editor", command=command, path="new.py", **arguments)

    episode, branch = (make(toolset="editor") for _ in range(2))
    episode.start()
    episode.step(edit("create", file_text="one\n"))
    snapshot = episode.snapshot()
    episode.step(edit("str_replace", old_str="one", new_str="two"))
    branch.restore(snapshot)
    assert "one" in branch.step(call("bash", command="cat new.py")).observation


def test_an_episode_that_lost_its_sandbox_has_no_snapshot(make: Make) -> None:
    lost = make()
    lost.start()
    lost.discard_sandbox(SandboxError("it burnt down"))
    with pytest.raises(EpisodeError):
        lost.snapshot()


def test_snapshots_restore_only_into_new_episodes_of_their_task(
    episode: Episode, make: Make
) -> None:
    moment = episode.snapshot()
    with pytest.raises(EpisodeError):
        episode.restore(moment)
    with pytest.raises(EpisodeError):
        make(row={"instance_id": "another"}).restore(moment)


def test_a_branch_without_sandbox_is_stillborn(
    episode: Episode, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = episode.snapshot()
    fail = mock.Mock(side_effect=SandboxError("no memory"))
    monkeypatch.setattr(lifecycle, "open_sandbox", fail)
    branch = make()
    branch.restore(moment)
    branch.step(SUBMIT)
    assert branch.stop_reason is StopReason.SANDBOX_ERROR
    assert (branch.error, fail.call_count) == ("no memory", 2)
