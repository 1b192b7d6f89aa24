"""How an episode ends, and that it is graded however it does."""

import json
from typing import Any
from unittest import mock

import gymnasium as gym
import pytest
from episodes import FIX, SUBMIT, Closing, Env, MakeEnv, raising, shell

from coding_gym import Grade, GradeReason
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.episode import Limits, episode
from coding_gym.errors import InvalidTaskError


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
    tiny_row: dict[str, Any], closing: Closing, caplog: pytest.LogCaptureFixture
) -> None:
    env = closing(gym.make("CodingRepair-v0", tasks=[tiny_row], max_episode_steps=2))
    for _ in range(2):
        env.reset()
        assert env.step(shell("true"))[2:4] == (False, False)
        _, reward, terminated, truncated, info = env.step(FIX)
        assert (reward, terminated, truncated) == (1.0, False, True)
        assert info["stop_reason"] == "max_turns"
    env.unwrapped.reset()
    assert env.unwrapped.episode.bounds.max_turns == 50
    assert caplog.messages == []


class _Patient(gym.wrappers.TimeLimit[Any, Any]):
    """A TimeLimit with a reset of its own."""

    def reset(self, **arguments: Any) -> Any:  # type: ignore[override]
        self._elapsed_steps = 0
        return self.env.reset(**arguments)


class _Holder(Env):
    """Another env, which plays a repair inside its own episode."""

    def __init__(self, inner: Env) -> None:
        self.inner = inner

    def reset(self, **arguments: Any) -> Any:
        return self.inner.reset(**arguments)


def test_only_a_time_limit_around_this_env_counts(make_env: MakeEnv) -> None:
    core = make_env(grading="none")
    for env, turns in (
        (_Patient(core, 3), 3),
        (gym.wrappers.TimeLimit(_Patient(core, 4), 2), 2),
        (gym.wrappers.TimeLimit(_Holder(core), 3), 50),
        (gym.wrappers.TimeLimit(_Holder(_Patient(core, 5)), 3), 5),
    ):
        env.reset()
        assert core.episode.bounds.max_turns == turns


def test_a_snapshot_inside_a_time_limit_begins_episodes(make_env: MakeEnv) -> None:
    core = make_env(grading="none")
    plain = make_env(grading="none")
    env = gym.wrappers.TimeLimit(core, 3)
    env.reset(seed=1)
    env.step(shell("true"))
    taken = core.snapshot()
    _, info = env.reset(options={"snapshot": taken})
    assert (info["turn"], info["budget"]["turns"]) == (1, 3)
    _, info = plain.reset(options={"snapshot": taken})
    assert (info["turn"], info["budget"]["turns"]) == (1, 49)
    core.limits = Limits(max_turns=7)  # holds from the next reset on
    _, info = plain.reset(options={"snapshot": core.snapshot()})
    assert info["budget"]["turns"] == 49


def test_a_cached_grade_is_that_of_the_same_patch_and_task(
    tiny_row: dict[str, Any], make_env: MakeEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    grading = mock.Mock(wraps=episode.grade_patch)
    monkeypatch.setattr(episode, "grade_patch", grading)
    rows = [tiny_row, tiny_row | {"instance_id": "other", "PASS_TO_PASS": []}]
    envs = [make_env(tasks=[row], grading="cached") for row in rows]
    infos = []
    for env, actions in ((0, [FIX, SUBMIT]), (0, [FIX, SUBMIT]), (0, [SUBMIT]), (1, [FIX, SUBMIT])):
        envs[env].reset()
        infos.append([envs[env].step(action) for action in actions][-1])
    assert [reward for _, reward, *_ in infos] == [1.0, 1.0, 0.0, 1.0]
    assert infos[0][4]["grade"] == infos[1][4]["grade"]
    assert grading.call_count == 3


def test_without_grading_no_sandbox_is_opened_for_the_end(
    tiny_row: dict[str, Any], make_env: MakeEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = raising(AssertionError("graded"))
    monkeypatch.setattr("coding_gym.episode.episode.grade_patch", never)
    untested = tiny_row | {"FAIL_TO_PASS": [], "PASS_TO_PASS": [], "test_patch": ""}
    with pytest.raises(InvalidTaskError):
        make_env(tasks=[untested])
    env = make_env(tasks=[untested], grading="none")
    env.reset(options={"task": untested | {"instance_id": "another"}})
    env.reset()
    env.step(FIX)
    _, reward, terminated, _, info = env.step(SUBMIT)
    assert (reward, terminated, info["mask_sample"]) == (0.0, True, False)
    assert info["grade"] == Grade(resolved=False, reason=GradeReason.NOT_GRADED)
    assert "width * height" in info["patch"]
    assert env.episode.trajectory().settings["grading"] == "none"
