"""What the caller is told of a call or an argument that cannot work."""

from typing import Any

import pytest
from episodes import SUBMIT

from coding_gym.envs.coding_repair import CodingRepairEnv
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
    with pytest.raises(EpisodeError, match="closed"):
        env.step("x")


def test_the_caller_is_told_what_is_wrong_with_an_argument(tiny_row: dict[str, Any]) -> None:
    for error, said, arguments in (
        (InvalidArgumentError, "max_turns must be .* at least 1, got 0", {"max_turns": 0}),
        (InvalidArgumentError, "max_turns must be .*, got True", {"max_turns": True}),
        (InvalidArgumentError, "max_obs_tokens must be .*, got 0", {"max_obs_tokens": 0}),
        (InvalidArgumentError, "max_obs_tokens must be .*, got True", {"max_obs_tokens": True}),
        (InvalidArgumentError, "render_mode must be .* got 'human'", {"render_mode": "human"}),
        (InvalidArgumentError, "command_timeout_s must be .* got 0", {"command_timeout_s": 0}),
        (InvalidArgumentError, "command_timeout_s must be a number", {"command_timeout_s": "1"}),
        (UnknownNameError, "no tool format is called 'xml'", {"tool_format": "xml"}),
        (UnknownNameError, "nanoo", {"toolset": "nanoo"}),
        (UnknownNameError, "lxc", {"sandbox": "lxc"}),
        (UnknownTaskError, "shapes-aera", {"task_ids": ["shapes-aera"]}),
        (InvalidTaskError, "'problem_statement'", {"tasks": [{"instance_id": "x"}]}),
    ):
        with pytest.raises(error, match=said):
            CodingRepairEnv(**{"tasks": [tiny_row]} | arguments)


def test_reset_options_pick_a_task(env: CodingRepairEnv, tiny_row: dict[str, Any]) -> None:
    other = tiny_row | {"instance_id": "other"}
    assert env.reset(options={"task": other})[1]["task_id"] == "other"
    assert env.reset(options={"task_id": "shapes-area"})[1]["task_id"] == "shapes-area"
    with pytest.raises(UnknownTaskError, match="nope"):
        env.reset(options={"task_id": "nope"})
    with pytest.raises(InvalidArgumentError, match="task_idd"):
        env.reset(options={"task_idd": "x"})
    for value in (None, ["shapes-area"], 3):
        with pytest.raises(InvalidArgumentError, match="task_id"):
            env.reset(options={"task_id": value})
    with pytest.raises(InvalidArgumentError, match="task_id"):
        env.reset(options={"task": "x"})
    with pytest.raises(InvalidArgumentError, match="task_id"):
        env.reset(options={"task_id": "shapes-area", "task": tiny_row})
    with pytest.raises(InvalidArgumentError, match="'x'"):
        env.reset(options="x")  # type: ignore[arg-type]
