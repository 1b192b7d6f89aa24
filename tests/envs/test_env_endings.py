"""How an episode ends, and that it is graded however it does."""

import json
from typing import Any

import gymnasium as gym
import pytest
from faults import raising
from moves import FIX, SUBMIT, shell

from coding_gym import Grade, GradeReason, Stop
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.errors import InvalidTaskError


def test_an_unchanged_tree_is_not_rewarded(env: CodingRepairEnv) -> None:
    env.reset()
    _, reward, terminated, _, info = env.step(SUBMIT)
    assert (reward, terminated) == (0.0, True)
    assert info["grade"].reason == "empty_patch"


def test_the_last_turn_truncates_and_still_grades(tiny_row: dict[str, Any]) -> None:
    env = CodingRepairEnv(tasks=[tiny_row], max_turns=2)
    env.reset()
    assert env.step(shell("true"))[4]["budget"]["turns"] == 1
    _, reward, terminated, truncated, info = env.step(FIX)
    assert (reward, terminated, truncated) == (1.0, False, True)
    assert info["stop_reason"] == "max_turns"
    env.close()


def test_a_stop_from_outside_truncates_and_grades(env: CodingRepairEnv) -> None:
    env.reset()
    env.step(FIX)
    _, reward, terminated, truncated, info = env.step(Stop("the trainer's budget is spent"))
    assert (reward, terminated, truncated) == (1.0, False, True)
    assert info["stop_reason"] == "stopped"


def test_a_changed_tree_without_a_call_ends_and_a_clean_one_is_nudged(env: CodingRepairEnv) -> None:
    env.reset()
    _, _, terminated, truncated, info = env.step("I think it is fine.")
    assert not terminated
    assert not truncated
    assert "Do not stop working." in info["text"]
    assert info["tool_calls"] == 1
    env.step(FIX)
    _, reward, terminated, _, info = env.step("Done.")
    assert (reward, terminated) == (1.0, True)
    assert info["stop_reason"] == "no_tool_call"


def test_calls_of_one_action_run_in_order_and_end_at_submit(env: CodingRepairEnv) -> None:
    env.reset()
    calls = [json.loads(shell("echo one")), json.loads(FIX), json.loads(SUBMIT)]
    _, reward, terminated, _, info = env.step(json.dumps([*calls, json.loads(shell("rm -rf *"))]))
    assert (reward, terminated) == (1.0, True)
    assert info["tool_calls"] == 3
    roles = [m["role"] for m in info["messages"]]
    assert roles == ["assistant", "tool", "tool", "tool"]
    called = [c["id"] for c in info["messages"][0]["tool_calls"]]
    assert [m["tool_call_id"] for m in info["messages"][1:]] == called[:3]


def test_a_time_limit_outside_grades_the_episode_that_it_truncates(
    tiny_row: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    env = gym.make("CodingRepair-v0", tasks=[tiny_row], max_episode_steps=2)
    for _ in range(2):
        env.reset()
        assert env.step(shell("true"))[2:4] == (False, False)
        _, reward, terminated, truncated, info = env.step(FIX)
        assert (reward, terminated, truncated) == (1.0, False, True)
        assert info["stop_reason"] == "max_turns"
    env.unwrapped.reset()
    assert env.unwrapped.episode.bounds.max_turns == 50  # type: ignore[attr-defined]
    assert caplog.messages == []
    env.close()


def test_without_grading_no_sandbox_is_opened_for_the_end(
    tiny_row: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("grade_patch", "start_ahead"):
        module = "lifecycle" if name == "grade_patch" else "episode"
        monkeypatch.setattr(f"coding_gym.episode.{module}.{name}", raising(AssertionError(name)))
    untested = tiny_row | {"FAIL_TO_PASS": [], "PASS_TO_PASS": [], "test_patch": ""}
    with pytest.raises(InvalidTaskError, match="names no test"):
        CodingRepairEnv(tasks=[untested])
    env = CodingRepairEnv(tasks=[untested], grading="none")
    env.reset(options={"task": untested | {"instance_id": "another"}})
    env.reset()
    env.step(FIX)
    _, reward, terminated, _, info = env.step(SUBMIT)
    assert (reward, terminated, info["mask_sample"]) == (0.0, True, False)
    assert info["grade"] == Grade(resolved=False, reason=GradeReason.NOT_GRADED)
    assert "width * height" in info["patch"]
    assert env.episode.trajectory().settings["grading"] == "none"
    env.close()
