import json
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from coding_gym import Completion, Stop
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.errors import (
    EpisodeError,
    InvalidArgumentError,
    InvalidTaskError,
    UnknownNameError,
    UnknownTaskError,
)

ALWAYS = {
    "task_id",
    "text",
    "messages",
    "turn",
    "tool_calls",
    "budget",
    "stop_reason",
    "reward_parts",
    "error",
    "mask_sample",
}
AT_END = {"resolved", "grade"}
FIX = json.dumps(
    {
        "name": "apply_patch",
        "arguments": {"search": "width + height", "replace": "width * height", "file": "shapes.py"},
    }
)
SUBMIT = '{"name": "submit", "arguments": {}}'


def shell(command: str) -> str:
    return json.dumps({"name": "shell", "arguments": {"cmd": command}})


@pytest.fixture
def env(tiny_row: dict[str, Any]) -> Iterator[CodingRepairEnv]:
    env = CodingRepairEnv(tasks=[tiny_row], render_mode="ansi")
    yield env
    env.close()


def test_gymnasiums_own_check_passes_without_a_warning(tiny_row: dict[str, Any]) -> None:
    env = gym.make("CodingRepair-v0", tasks=[tiny_row], max_turns=3, disable_env_checker=True)
    check_env(env.unwrapped)  # warnings are errors here
    env.close()


def test_the_spec_round_trips_through_json(tiny_row: dict[str, Any]) -> None:
    env = gym.make("coding_gym:CodingRepair-v0", tasks=[tiny_row], task_ids=["shapes-area"])
    assert env.spec is not None
    again = gym.envs.registration.EnvSpec.from_json(env.spec.to_json())
    assert again == env.spec
    remade = gym.make(again)
    assert remade.reset(seed=0)[1]["task_id"] == "shapes-area"
    remade.close()
    env.close()


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
    assert set(info["grade"]["fail_to_pass"]) == set(env.task.fail_to_pass)
    assert "width * height" in env.patch().text


def test_an_unchanged_tree_is_not_rewarded(env: CodingRepairEnv) -> None:
    env.reset()
    _, reward, terminated, _, info = env.step(SUBMIT)
    assert (reward, terminated) == (0.0, True)
    assert info["grade"]["reason"] == "empty_patch"


def test_info_holds_no_gold_and_no_hidden_test_before_the_end(env: CodingRepairEnv) -> None:
    _, info = env.reset()
    _, _, _, _, later = env.step(shell("cat shapes.py; ls -a; git log --all --stat"))
    shown = json.dumps([info, later])
    assert "width * height" not in shown
    assert "test_hidden" not in shown
    assert "test_tall" not in shown


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


@pytest.mark.parametrize(
    "action",
    [
        "",
        "\x00",
        "é\udcff",
        "{",
        "[" * 5000,
        '{"name": 3}',
        "<tool_call>{</tool_call>",
        "x" * 200_000,
    ],
)
def test_any_string_is_answered(env: CodingRepairEnv, action: str) -> None:
    env.reset()
    observation, reward, terminated, truncated, _ = env.step(action)
    assert observation in env.observation_space
    assert (reward, terminated, truncated) == (0.0, False, False)


def test_tokens_are_kept_as_sampled(env: CodingRepairEnv) -> None:
    env.reset()
    env.step(Completion(FIX, [9, 8, 7], [-0.5, -0.25, -0.125]))
    env.step(SUBMIT)
    sampled, plain = env.episode.trajectory().turns
    assert (sampled.token_ids, sampled.logprobs, sampled.exact) == (
        (9, 8, 7),
        (-0.5, -0.25, -0.125),
        True,
    )
    assert plain.token_ids == tuple(env.tokenizer.encode(SUBMIT))
    assert not plain.exact


def test_an_observation_keeps_the_tail(tiny_row: dict[str, Any]) -> None:
    env = CodingRepairEnv(tasks=[tiny_row], max_obs_tokens=8)
    observation, info = env.reset()
    assert observation["attention_mask"].sum() == 8
    assert info["text"].endswith(env.tokenizer.decode(observation["input_ids"].tolist()))
    observation, *_ = env.step(shell("echo hi"))
    assert observation["attention_mask"].tolist() == sorted(
        observation["attention_mask"].tolist(), reverse=True
    )
    assert observation["input_ids"].dtype == np.int32
    env.close()


def test_the_transcript_can_be_followed_by_a_person(env: CodingRepairEnv) -> None:
    env.reset()
    env.step(shell("cat shapes.py"))
    env.step(FIX)
    env.step(SUBMIT)
    text = env.render()
    assert text is not None
    assert "area(3, 5) gives 8" in text
    assert "$ cat shapes.py" in text
    assert "return width + height" in text
    assert "apply_patch(" in text
    assert "submitted after 3 turns: resolved" in text


def test_a_new_reset_starts_from_a_clean_tree(env: CodingRepairEnv) -> None:
    env.reset()
    env.step(shell("echo x > new; rm shapes.py; rm -rf .git"))
    env.reset()
    _, _, _, _, info = env.step(shell("git status --porcelain; ls"))
    assert info["text"].split() == ["shapes.py", "test_shapes.py"]


def test_calls_out_of_order_are_refused(env: CodingRepairEnv) -> None:
    with pytest.raises(EpisodeError, match="call reset first"):
        env.step("x")
    env.reset()
    env.step(SUBMIT)
    with pytest.raises(EpisodeError, match="has ended"):
        env.step("x")
    env.reset()
    env.close()
    env.close()
    with pytest.raises(EpisodeError, match="closed"):
        env.step("x")


def test_the_caller_is_told_what_is_wrong_with_an_argument(tiny_row: dict[str, Any]) -> None:
    def make(**arguments: Any) -> CodingRepairEnv:
        return CodingRepairEnv(**({"tasks": [tiny_row]} | arguments))

    with pytest.raises(InvalidArgumentError, match=r"max_turns must be .* at least 1, got 0"):
        make(max_turns=0)
    with pytest.raises(InvalidArgumentError, match=r"max_obs_tokens must be .*, got 0"):
        make(max_obs_tokens=0)
    with pytest.raises(InvalidArgumentError, match=r"render_mode must be .* got 'human'"):
        make(render_mode="human")
    with pytest.raises(UnknownNameError, match="no tool format is called 'xml'"):
        make(tool_format="xml")
    with pytest.raises(InvalidArgumentError, match=r"command_timeout_s must be .* got 0"):
        make(command_timeout_s=0)
    for value in ("1", None, float("nan")):
        with pytest.raises(InvalidArgumentError, match="command_timeout_s must be a number"):
            make(command_timeout_s=value)
    with pytest.raises(InvalidArgumentError, match=r"max_obs_tokens must be .*, got True"):
        make(max_obs_tokens=True)
    with pytest.raises(InvalidArgumentError, match=r"max_turns must be .*, got True"):
        make(max_turns=True)
    with pytest.raises(UnknownNameError, match="nanoo"):
        make(toolset="nanoo")
    with pytest.raises(UnknownNameError, match="lxc"):
        make(sandbox="lxc")
    with pytest.raises(UnknownTaskError, match="shapes-aera"):
        make(task_ids=["shapes-aera"])
    with pytest.raises(InvalidTaskError, match="'problem_statement'"):
        make(tasks=[{"instance_id": "x"}])


def test_reset_options_pick_a_task_and_typos_are_refused(
    env: CodingRepairEnv, tiny_row: dict[str, Any]
) -> None:
    other = tiny_row | {"instance_id": "other"}
    assert env.reset(options={"task": other})[1]["task_id"] == "other"
    assert env.reset(options={"task_id": "shapes-area"})[1]["task_id"] == "shapes-area"
    with pytest.raises(UnknownTaskError, match="nope"):
        env.reset(options={"task_id": "nope"})
    with pytest.raises(InvalidArgumentError, match="task_idd"):
        env.reset(options={"task_idd": "x"})
    for value in (None, ["shapes-area"], 3):
        with pytest.raises(InvalidArgumentError, match="task_id must be a text"):
            env.reset(options={"task_id": value})
    with pytest.raises(InvalidArgumentError, match="got both"):
        env.reset(options={"task_id": "shapes-area", "task": tiny_row})
    with pytest.raises(InvalidArgumentError, match=r"reset options are .* got 'x'"):
        env.reset(options="x")  # type: ignore[arg-type]


def test_a_refused_reset_leaves_the_running_episode_alone(env: CodingRepairEnv) -> None:
    env.reset()
    env.step(FIX)
    with pytest.raises(UnknownTaskError):
        env.reset(options={"task_id": "nope"})
    assert env.step(SUBMIT)[1] == 1.0


def test_edits_of_an_info_do_not_reach_the_transcript(env: CodingRepairEnv) -> None:
    _, info = env.reset()
    before = json.dumps(env.episode.trajectory().to_json())
    info["messages"][0]["content"] = "edited"
    info["messages"].clear()
    info["budget"]["turns"] = 7
    assert json.dumps(env.episode.trajectory().to_json()) == before
    assert env.step(shell("true"))[4]["budget"]["turns"] == 49


def test_samples_are_valid_calls_and_follow_the_seed(env: CodingRepairEnv) -> None:
    env.action_space.seed(3)
    first = [env.action_space.sample() for _ in range(20)]
    env.action_space.seed(3)
    assert [env.action_space.sample() for _ in range(20)] == first
    assert {json.loads(s)["name"] for s in first} <= {"shell", "apply_patch", "submit"}


@pytest.mark.parametrize("sampler", ["uniform", "sequential", "shuffled"])
def test_the_sampler_follows_the_seed(sampler: str) -> None:
    env = CodingRepairEnv(sampler=sampler)
    picked = [env.reset(seed=5)[1]["task_id"], *(env.reset()[1]["task_id"] for _ in range(5))]
    again = [env.reset(seed=5)[1]["task_id"], *(env.reset()[1]["task_id"] for _ in range(5))]
    assert picked == again
    assert len(set(picked)) > 1
    env.close()
