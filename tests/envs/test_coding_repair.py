"""`reset`, `step` and `render` of the env, and samplers that use the results."""

import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from episodes import FIX, SUBMIT, TRUE, Closing, MakeEnv, shell

from coding_gym import restore
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.vector import CodingRepairVectorEnv

ALWAYS = {
    "task_id",
    "text",
    "observation_cut",
    "messages",
    "turn",
    "tool_calls",
    "budget",
    "stop_reason",
    "reward_parts",
    "error",
    "mask_sample",
}
AT_END = {"resolved", "grade", "patch"}


def test_a_repair_is_graded_by_hidden_tests_and_rewarded(env: CodingRepairEnv) -> None:
    observation, info = env.reset(seed=1)
    assert info.keys() == ALWAYS
    assert info["text"].startswith("area(3, 5) gives 8")
    assert observation in env.observation_space
    ids = observation["input_ids"][observation["attention_mask"] == 1]
    assert env.tokenizer.decode(ids.tolist()) == info["text"]
    observation, reward, terminated, truncated, info = env.step(FIX)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info["text"] == "patch applied successfully"
    assert info.keys() == ALWAYS
    observation, reward, terminated, truncated, info = env.step(SUBMIT)
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info.keys() == ALWAYS | AT_END
    assert info["resolved"] is True
    assert info["stop_reason"] == "submitted"
    assert info["reward_parts"] == {"resolved": 1.0}
    assert set(info["grade"].fail_to_pass) == set(env.episode.task.fail_to_pass)
    assert env.episode.grade is not None
    assert info["grade"] == replace(env.episode.grade, duration_s=0.0)
    assert "width * height" in env.episode.patch().text == info["patch"]
    assert pickle.loads(pickle.dumps(info)) == info  # noqa: S301 - just written


def test_info_holds_no_gold_or_hidden_test_before_the_end(env: CodingRepairEnv) -> None:
    _, info = env.reset()
    _, _, _, _, step_info = env.step(shell("cat shapes.py; ls -a; git log --all --stat"))
    text = json.dumps([info, step_info])
    assert "width * height" not in text
    assert "test_hidden" not in text
    assert "test_tall" not in text


def test_long_issues_keep_their_head_and_long_results_their_tail(
    tiny_row: dict[str, Any], make_env: MakeEnv
) -> None:
    issue = " ".join(map(str, range(500)))
    env = make_env(tasks=[tiny_row | {"problem_statement": issue}], max_obs_tokens=64)
    observation, info = env.reset()
    assert info["observation_cut"] is True
    assert info["text"] == issue
    text = env.tokenizer.decode(observation["input_ids"].tolist())
    assert issue.startswith(text)
    observation, _, _, _, info = env.step(shell("seq 500"))
    assert info["observation_cut"] is True
    assert info["text"].endswith(env.tokenizer.decode(observation["input_ids"].tolist()))
    observation, _, _, _, info = env.step(shell("echo hi"))
    assert info["observation_cut"] is False
    assert observation["input_ids"][-1] == env.tokenizer.pad_id
    mask = observation["attention_mask"].tolist()
    assert mask == sorted(mask, reverse=True)
    assert observation["input_ids"].dtype == np.int32


def test_render_shows_issue_calls_results_and_verdict(env: CodingRepairEnv) -> None:
    env.reset()
    env.step(shell("cat shapes.py"))
    env.step(FIX)
    env.step(SUBMIT)
    text = env.render()
    assert text is not None
    for part in ("area(3, 5) gives 8", "cat shapes.py", "return width + height", "resolved"):
        assert part in text


def test_a_command_ends_after_the_envs_timeout(make_env: MakeEnv) -> None:
    env = make_env(command_timeout_s=0.3)
    env.reset()
    _, _, terminated, truncated, info = env.step(shell("sleep 60; echo late"))
    assert (terminated, truncated, info["error"]) == (False, False, "")
    assert "late" not in info["text"]


def test_changes_of_an_info_do_not_change_the_record(env: CodingRepairEnv) -> None:
    _, info = env.reset()
    before = env.episode.trajectory().to_json()
    info["messages"][0]["content"] = "edited"
    info["messages"].clear()
    info["budget"]["turns"] = 7
    assert env.episode.trajectory().to_json() == before
    assert env.step(shell("true"))[4]["budget"]["turns"] == 49
    info = env.step(SUBMIT)[4]
    before = env.episode.trajectory().to_json()
    info["grade"].fail_to_pass["invented"] = info["grade"].pass_to_pass["invented"] = "passed"
    assert env.episode.trajectory().to_json() == before


IDS = ["first", "second"]
ADAPTIVE = {"name": "adaptive", "min_tries": 2, "window": 4, "revisit": 0}


@pytest.fixture
def rows(tiny_row: dict[str, Any]) -> list[dict[str, Any]]:
    return [tiny_row | {"instance_id": task_id} for task_id in IDS]


def test_a_seed_resets_the_statistics_of_a_sampler(
    rows: list[dict[str, Any]], make_env: MakeEnv
) -> None:
    env = make_env(tasks=rows, sampler=ADAPTIVE)
    for task_id, action in ((IDS[0], TRUE), (IDS[0], TRUE), (IDS[1], TRUE), (IDS[1], FIX)):
        env.reset(options={"task_id": task_id})
        env.step(action)
        env.step(SUBMIT)
    assert {env.reset()[1]["task_id"] for _ in range(12)} == {IDS[1]}
    drawn = {env.reset(seed=3)[1]["task_id"], *(env.reset()[1]["task_id"] for _ in range(12))}
    assert drawn == set(IDS)


def test_samplers_of_a_vector_env_share_results(
    rows: list[dict[str, Any]], closing: Closing
) -> None:
    envs = closing(CodingRepairVectorEnv(2, tasks=rows, sampler=ADAPTIVE))
    envs.reset(options={"task_id": IDS[0]})
    envs.step([SUBMIT, SUBMIT])
    for _ in range(8):
        assert envs.reset()[1]["task_id"].tolist() == [IDS[1]] * 2


def test_a_restored_env_does_not_change_the_results_of_others(
    rows: list[dict[str, Any]], closing: Closing
) -> None:
    envs = closing(CodingRepairVectorEnv(2, tasks=rows, sampler=ADAPTIVE))
    envs.reset(options={"task_id": IDS[0]})
    snapshot = envs.snapshot(0)
    envs.step([SUBMIT, SUBMIT])
    first, second = (env.unwrapped for env in envs.envs)
    expected = second.sampler.state()
    restore(first, snapshot)
    assert second.sampler.state() == expected != first.sampler.state()
