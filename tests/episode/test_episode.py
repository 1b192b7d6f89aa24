"""An episode without Gymnasium: its chat, its trajectory, and calls out of order."""

import json
from collections.abc import Callable
from unittest import mock

import pytest
from moves import shells

from coding_gym.action import Stop
from coding_gym.episode import Episode, EpisodeFactory
from coding_gym.errors import EpisodeError, TemplateError
from coding_gym.trajectory import StopReason

Make = Callable[..., Episode]


def test_calls_before_start_are_refused(make: Make) -> None:
    with pytest.raises(EpisodeError, match="before start"):
        make().step("x")
    with pytest.raises(EpisodeError, match="snapshot was called before start"):
        make().snapshot()


def test_the_trajectory_holds_the_whole_chat_and_every_turn(episode: Episode) -> None:
    episode.step(shells("echo one", "echo two"))
    episode.step('{"name": "submit", "arguments": {}}')
    trajectory = episode.trajectory()
    assert next(t.observation for t in trajectory.turns) == "one\ntwo"
    assert [len(t.calls) for t in trajectory.turns] == [2, 1]
    assert all(t.duration_s > 0 for t in trajectory.turns)
    assert trajectory.stop_reason is StopReason.SUBMITTED
    assert [m["role"] for m in trajectory.messages] == [
        *("system", "user"),
        *("assistant", "tool", "tool"),
        *("assistant", "tool"),
    ]
    assert json.loads(json.dumps(trajectory.to_json())) == trajectory.to_json()


def test_a_stop_is_recorded_without_tokens(episode: Episode) -> None:
    episode.step(Stop("the budget of the trainer is spent"))
    (turn,) = episode.trajectory().turns
    assert (turn.token_ids, turn.exact) == ((), True)
    assert turn.action == "the budget of the trainer is spent"


def test_a_failed_template_is_not_tried_twice(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    fail = mock.Mock(side_effect=TemplateError("pip said no"))
    monkeypatch.setattr(EpisodeFactory, "template", fail)
    episode = make()
    episode.start()
    assert fail.call_count == 1
    assert episode.step("x").stop_reason is StopReason.SANDBOX_ERROR
    assert episode.error == "pip said no"
