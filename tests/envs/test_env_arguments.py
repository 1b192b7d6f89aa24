"""Invalid calls and arguments are refused; any Unicode text is a valid action."""

import re
from inspect import getdoc, signature
from typing import Any

import pytest
from episodes import SUBMIT, MakeEnv, raising

import coding_gym
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.envs.spaces import ActionText
from coding_gym.episode import EpisodeConfig
from coding_gym.errors import (
    EpisodeError,
    InvalidArgumentError,
    InvalidTaskError,
    UnknownNameError,
    UnknownTaskError,
)


def test_calls_out_of_order_are_refused(env: CodingRepairEnv) -> None:
    with pytest.raises(EpisodeError):
        env.step("x")
    env.reset()
    env.step(SUBMIT)
    with pytest.raises(EpisodeError):
        env.step("x")
    env.reset()
    env.close()
    env.close()
    with pytest.raises(EpisodeError):
        env.step("x")


@pytest.mark.parametrize(
    ("error", "named", "arguments"),
    [
        (InvalidArgumentError, "'max_turns'", {"max_turn": 3}),
        (InvalidArgumentError, "'max_obs_tokens'", {"max_obs_token": 5}),
        (InvalidArgumentError, "'sampler'", {"samplr": "uniform"}),
        (InvalidArgumentError, "'render_mode'", {"rendermode": "ansi"}),
        (InvalidArgumentError, "max_obs_tokens", {"max_obs_tokens": 0}),
        (InvalidArgumentError, "render_mode", {"render_mode": "human"}),
        (InvalidArgumentError, "command_timeout_s", {"command_timeout_s": 0}),
        (InvalidArgumentError, "command_timeout_s", {"command_timeout_s": "1"}),
        (UnknownNameError, "grading", {"grading": "x"}),
        (UnknownNameError, "challenge", {"challenge": "x"}),
        (UnknownNameError, "xml", {"tool_format": "xml"}),
        (UnknownNameError, "nanoo", {"toolset": "nanoo"}),
        (UnknownNameError, "toolset .*'nano'", {"toolset": ["nano"]}),
        (UnknownNameError, "tokenizer .*None", {"tokenizer": None}),
        (UnknownNameError, "tokenizer .*3", {"tokenizer": [3]}),
        (UnknownNameError, "lxc", {"sandbox": "lxc"}),
        (UnknownTaskError, "shapes-aera", {"task_ids": ["shapes-aera"]}),
        (InvalidTaskError, "problem_statement", {"tasks": [{"instance_id": "x"}]}),
    ],
)
def test_a_wrong_argument_is_named(
    error: type[Exception], named: str, arguments: dict[str, Any], tiny_row: dict[str, Any]
) -> None:
    with pytest.raises(error, match=named):
        CodingRepairEnv(**{"tasks": [tiny_row]} | arguments)


def test_class_docstring_names_all_episode_arguments() -> None:
    entry = (getdoc(CodingRepairEnv) or "").partition("**episode:")[2].partition("\n\n")[0]
    *arguments, unknown = signature(EpisodeConfig.from_config).parameters
    assert (re.findall(r"``(\w+)``", entry), unknown) == (arguments, "unknown")


def test_reset_options_pick_a_task(env: CodingRepairEnv, tiny_row: dict[str, Any]) -> None:
    row = tiny_row | {"instance_id": "other"}
    assert env.reset(options={"task": row})[1]["task_id"] == "other"
    assert env.reset(options={"task_id": "shapes-area"})[1]["task_id"] == "shapes-area"
    with pytest.raises(UnknownTaskError, match="absent-task"):
        env.reset(options={"task_id": "absent-task"})
    refused_options: list[Any] = [{"task_idd": "x"}, {"task": "x"}, "x"]
    refused_options += [{"task_id": value} for value in (None, ["shapes-area"], 3)]
    for options in (*refused_options, {"task_id": "shapes-area", "task": tiny_row}):
        with pytest.raises(InvalidArgumentError):
            env.reset(options=options)


def test_a_refused_reset_changes_nothing(tiny_row: dict[str, Any], make_env: MakeEnv) -> None:
    rows = [tiny_row | {"instance_id": f"shapes-{number}"} for number in range(9)]
    env = make_env(tasks=rows, sampler="shuffled")
    env.reset(seed=0)
    before = coding_gym.snapshot(env)
    with pytest.raises(UnknownTaskError):
        env.reset(seed=1, options={"task_id": "absent-task"})
    after = coding_gym.snapshot(env)
    assert (after.seed, after.np_random, after.sampler) == (0, before.np_random, before.sampler)
    assert env.step(SUBMIT)[2]


def test_an_interrupted_reset_leaves_no_episode_to_play(
    env: CodingRepairEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(type(env.tokenizer), "encode", raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            env.reset()
    with pytest.raises(EpisodeError):
        env.step(SUBMIT)
    assert env.episode.template is None  # the sandbox is closed


def test_any_text_is_an_action() -> None:
    space = ActionText("bash")
    for text in ("", "é", "中🙂", space.sample()):
        assert text in space
    assert 3 not in space


def test_spaces_of_the_same_toolset_are_equal() -> None:
    assert ActionText("nano") == ActionText() != ActionText("bash")
