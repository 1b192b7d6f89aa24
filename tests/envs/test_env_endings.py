"""Every end of an episode is graded."""

import json
from typing import Any
from unittest import mock

import pytest
from episodes import FIX, SUBMIT, MakeEnv, raising, shell

from coding_gym import Completion, Grade, GradeReason
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.episode import episode
from coding_gym.errors import InvalidTaskError


def test_reply_without_call_ends_only_changed_episodes(env: CodingRepairEnv) -> None:
    env.reset()
    _, _, terminated, truncated, info = env.step("I think it is fine.")
    assert not terminated
    assert not truncated
    assert info["tool_calls"] == 1
    env.step(FIX)
    _, reward, terminated, _, info = env.step("Done.")
    assert (reward, terminated) == (1.0, True)
    assert info["stop_reason"] == "no_tool_call"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "<think>It is right now.",
        "so</think>\n",
        f"<think>so</think><think>{SUBMIT}",
        json.dumps({"role": "assistant", "content": "", "reasoning_content": SUBMIT}),
        Completion("", calls=(), reasoning=SUBMIT),
        Completion("I have changed", [1, 2], is_cut=True),
    ],
)
def test_an_empty_reply_does_not_end_a_changed_episode(env: CodingRepairEnv, reply: str) -> None:
    env.reset()
    env.step(FIX)
    _, _, terminated, _, info = env.step(reply)
    assert (terminated, info["turn"], info["tool_calls"]) == (False, 2, 2)
    assert [message["role"] for message in info["messages"]] == ["assistant", "user"]
    assert env.step("<think>so</think>Done.")[1:3] == (1.0, True)


def test_calls_of_one_action_run_in_order_until_submit(env: CodingRepairEnv) -> None:
    env.reset()
    calls = [json.loads(shell("echo one")), json.loads(FIX), json.loads(SUBMIT)]
    _, reward, terminated, _, info = env.step(json.dumps([*calls, json.loads(shell("rm -rf *"))]))
    assert (reward, terminated) == (1.0, True)
    assert info["tool_calls"] == 3
    roles = [m["role"] for m in info["messages"]]
    assert roles == ["assistant", "tool", "tool", "tool"]
    call_ids = [c["id"] for c in info["messages"][0]["tool_calls"]]
    assert [m["tool_call_id"] for m in info["messages"][1:]] == call_ids[:3]


def test_a_cached_grade_needs_the_same_patch_and_task(
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
    fail = raising(AssertionError("graded"))
    monkeypatch.setattr("coding_gym.episode.episode.grade_patch", fail)
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
