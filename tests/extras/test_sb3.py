"""The Stable-Baselines3 adapter, and the notebook that trains MaskablePPO with it."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from episodes import Closing, raising

from coding_gym.errors import InvalidArgumentError, SandboxError

pytest.importorskip("sb3_contrib")

from coding_gym.adapters.sb3 import CodingRepairVecEnv

pytestmark = [pytest.mark.trainer, pytest.mark.usefixtures("one_thread")]

RUN_TESTS, SUBMIT, _, REPAIR = range(4)  # the second candidate repairs the tiny task
K = 8
MENU = {"name": "MenuActions", "kwargs": {"num_candidates": K}}

Make = Callable[..., CodingRepairVecEnv]


@pytest.fixture
def make(tiny_row: dict[str, Any], closing: Closing) -> Make:
    """Makes vec envs of the tiny task, closed after the test."""
    defaults = {"wrappers": [MENU], "tasks": [tiny_row], "max_obs_tokens": 32, "max_turns": 6}
    return lambda num_envs=2, **kwargs: closing(CodingRepairVecEnv(num_envs, **defaults | kwargs))


def slot(observations: dict[str, Any], index: int) -> dict[str, Any]:
    return {key: values[index] for key, values in observations.items()}


@pytest.mark.timeout(900)
def test_smoke_sb3_repairs_more_often_after_training(run_example: Callable[..., list[str]]) -> None:
    shares = re.findall(r"steps: (\d+)%", "\n".join(run_example("notebooks/train.py")))
    assert int(shares[-1]) > int(shares[0])


def test_the_next_episode_begins_in_the_ending_step(make: Make) -> None:
    env = make()
    env.seed(0)
    first = env.reset()
    observations, rewards, dones, infos = env.step(np.array([SUBMIT, RUN_TESTS]))
    assert dones.tolist() == [True, False]
    assert rewards.dtype == np.float32
    np.testing.assert_equal(slot(observations, 0), slot(first, 0))
    assert infos[0]["stop_reason"] == "submitted"
    assert infos[0]["grade"].reason == "empty_patch"
    assert env.reset_infos[0]["turn"] == 0
    final = infos[0]["terminal_observation"]
    assert env.observation_space.contains(final)
    assert final["menu"][-1] < first["menu"][0, -1]
    assert "terminal_observation" not in infos[1]
    _, _, dones, infos = env.step(np.array([RUN_TESTS, SUBMIT]))
    assert dones.tolist() == [False, True]
    assert [info["turn"] for info in infos] == [1, 2]


def test_the_mask_allows_a_repair_that_is_rewarded(make: Make) -> None:
    env = make()
    env.reset()
    for action in (REPAIR, RUN_TESTS, SUBMIT):
        assert env.env_method("action_masks")[0][action]
        observations, rewards, dones, _ = env.step(np.array([action, RUN_TESTS]))
        np.testing.assert_array_equal(
            np.stack(env.env_method("action_masks")), observations["action_mask"]
        )
    assert (rewards.tolist(), dones.tolist()) == ([1.0, 0.0], [True, False])


def test_an_episode_at_a_limit_is_not_bootstrapped(make: Make) -> None:
    env = make(max_turns=1)
    env.reset()
    _, _, dones, infos = env.step(np.array([RUN_TESTS, RUN_TESTS]))
    assert dones.all()
    for info in infos:
        assert info["stop_reason"] == "max_turns"
        assert info["resolved"] is False
        assert info["TimeLimit.truncated"] is False


def test_a_lost_episode_is_bootstrapped(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make(num_envs=1)
    monkeypatch.setattr("coding_gym.episode.config.open_sandbox", raising(SandboxError("full")))
    env.reset()
    _, rewards, dones, infos = env.step(np.array([SUBMIT]))
    assert dones.all()
    assert rewards.tolist() == [0.0]
    assert infos[0]["mask_sample"] is True
    assert infos[0]["TimeLimit.truncated"] is True


def test_options_apply_to_one_reset(make: Make, tiny_row: dict[str, Any]) -> None:
    env = make()
    other = tiny_row | {"instance_id": "shapes-again"}
    env.set_options({"task": other})
    env.reset()
    assert [info["task_id"] for info in env.reset_infos] == ["shapes-again"] * 2
    env.reset()
    assert [info["task_id"] for info in env.reset_infos] == ["shapes-area"] * 2
    env.set_options([{"task": other}, {}])
    with pytest.raises(InvalidArgumentError, match="options"):
        env.reset()


def test_text_actions_are_refused(tiny_row: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="MenuActions"):
        CodingRepairVecEnv(1, tasks=[tiny_row])
