"""Whose fault it is decides what happens: machinery failures are data, not exceptions."""

import os
import signal
from typing import Any

import pytest
from faults import raising
from moves import SUBMIT, shell
from processes import descendants

from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.errors import GradingError, SandboxError, SandboxUnavailableError


def test_a_sandbox_that_will_not_open_gives_a_stillborn_episode(
    tiny_row: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = []

    def fail(*arguments: Any, **_options: Any) -> None:
        attempts.append(arguments)
        raise SandboxError("no more room")

    monkeypatch.setattr("coding_gym.episode.lifecycle.open_sandbox", fail)
    env = CodingRepairEnv(tasks=[tiny_row])
    _, info = env.reset()
    assert info["text"].startswith("area(3, 5)")
    assert len(attempts) == 2
    _, reward, terminated, truncated, info = env.step(SUBMIT)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["stop_reason"] == "sandbox_error"
    assert info["error"] == "no more room"
    assert info["mask_sample"] is True
    assert info["resolved"] is False


def test_a_sandbox_that_opens_at_the_second_attempt_is_an_ordinary_episode(
    tiny_row: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from coding_gym.episode import lifecycle

    real, attempts = lifecycle.open_sandbox, []

    def fail_once(*arguments: Any, **options: Any) -> Any:
        attempts.append(arguments)
        if len(attempts) == 1:
            raise SandboxError("busy")
        return real(*arguments, **options)

    monkeypatch.setattr("coding_gym.episode.lifecycle.open_sandbox", fail_once)
    env = CodingRepairEnv(tasks=[tiny_row])
    env.reset()
    _, _, terminated, _, info = env.step(SUBMIT)
    assert terminated
    assert info["error"] == ""
    env.close()


def test_a_machine_without_sandboxes_is_the_callers_to_mend(
    tiny_row: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "coding_gym.episode.lifecycle.open_sandbox",
        raising(SandboxUnavailableError("forbidden; run: sysctl …")),
    )
    with pytest.raises(SandboxUnavailableError, match="sysctl"):
        CodingRepairEnv(tasks=[tiny_row]).reset()


def test_a_grader_that_fails_masks_the_sample(
    tiny_row: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "coding_gym.episode.episode.grade_patch", raising(GradingError("no report"))
    )
    env = CodingRepairEnv(tasks=[tiny_row])
    env.reset()
    _, reward, terminated, truncated, info = env.step(SUBMIT)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["stop_reason"], info["error"]) == ("grading_error", "no report")
    assert info["mask_sample"] is True


def test_a_sandbox_killed_from_outside_truncates_and_the_next_reset_works(
    tiny_row: dict[str, Any],
) -> None:
    env = CodingRepairEnv(tasks=[tiny_row])
    env.reset()
    env.step(shell("true"))
    before = set(descendants(os.getpid()))
    other = CodingRepairEnv(tasks=[tiny_row])
    other.reset()
    (init,) = set(descendants(os.getpid())) - before
    os.kill(init, signal.SIGKILL)
    _, reward, terminated, truncated, info = other.step(shell("true"))
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["stop_reason"] == "sandbox_error"
    assert info["error"]
    assert env.step(shell("echo still here"))[4]["text"] == "still here"
    other.reset()
    assert other.step(shell("echo again"))[4]["text"] == "again"
    other.close()
    env.close()


def test_the_policys_own_failures_are_text(tiny_row: dict[str, Any]) -> None:
    env = CodingRepairEnv(tasks=[tiny_row], command_timeout_s=0.3)
    env.reset()
    for action in (shell("exit 3"), shell("sleep 60"), '{"name": "fly", "arguments": {}}', "{"):
        _, _, terminated, truncated, info = env.step(action)
        assert not terminated
        assert not truncated
        assert info["error"] == ""
        assert info["text"]
    env.close()
