"""Whose fault it is decides what happens: machinery failures are data, not exceptions."""

from itertools import chain, repeat
from unittest import mock

import pytest
from episodes import SUBMIT, MakeEnv, raising

from coding_gym.episode import config
from coding_gym.errors import GradingError, SandboxError


def test_an_episode_without_a_sandbox_is_truncated_and_masked(
    make_env: MakeEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail = mock.Mock(side_effect=SandboxError("no more room"))
    monkeypatch.setattr(config, "open_sandbox", fail)
    env = make_env()
    _, info = env.reset()
    assert info["text"].startswith("area(3, 5)")
    assert fail.call_count == 2
    _, reward, terminated, truncated, info = env.step(SUBMIT)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["stop_reason"] == "sandbox_error"
    assert info["error"] == "no more room"
    assert info["mask_sample"] is True
    assert info["resolved"] is False


def test_a_second_attempt_may_open_it(make_env: MakeEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = chain([SandboxError("busy")], repeat(mock.DEFAULT))
    fail_once = mock.Mock(wraps=config.open_sandbox, side_effect=outcomes)
    monkeypatch.setattr(config, "open_sandbox", fail_once)
    env = make_env()
    env.reset()
    _, _, terminated, _, info = env.step(SUBMIT)
    assert terminated
    assert info["error"] == ""
    assert fail_once.call_count > 1


def test_a_failing_grader_masks_it(make_env: MakeEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "coding_gym.episode.episode.grade_patch", raising(GradingError("no report"))
    )
    env = make_env()
    env.reset()
    _, reward, terminated, truncated, info = env.step(SUBMIT)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["stop_reason"], info["error"]) == ("grading_error", "no report")
    assert info["mask_sample"] is True
