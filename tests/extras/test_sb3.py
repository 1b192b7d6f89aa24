import importlib
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from episodes import Closing, MakeEnv, raising

from coding_gym import load_tasks
from coding_gym.errors import InvalidArgumentError, MissingDependencyError, SandboxError
from coding_gym.wrappers import MenuActions

pytest.importorskip("sb3_contrib")

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecMonitor

from coding_gym.adapters.sb3 import CodingRepairVecEnv, make_vec_env
from coding_gym.adapters.sb3_policy import MenuPolicy, TokenEmbeddingExtractor

pytestmark = [pytest.mark.trainer, pytest.mark.usefixtures("one_thread")]

ROOT = Path(__file__).parents[2]
LOCATE, VIEW, RUN_TESTS, SUBMIT, FIRST = range(5)
K = 8
MENU = {"name": "MenuActions", "kwargs": {"num_candidates": K}}

Make = Callable[..., CodingRepairVecEnv]


@pytest.fixture
def make(tiny_row: dict[str, Any], closing: Closing) -> Make:
    """Makes vec envs of the tiny task, closed after the test."""
    usual = {"wrappers": [MENU], "tasks": [tiny_row], "max_obs_tokens": 32, "max_turns": 6}
    return lambda num_envs=2, **kwargs: closing(make_vec_env(num_envs, seed=0, **usual | kwargs))


def slot(observations: dict[str, Any], index: int) -> dict[str, Any]:
    return {key: values[index] for key, values in observations.items()}


def test_the_next_episode_begins_in_the_step_that_ends_one(make: Make) -> None:
    env = make()
    first = env.reset()
    observations, rewards, dones, infos = env.step(np.array([SUBMIT, LOCATE]))
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
    _, _, dones, infos = env.step(np.array([LOCATE, SUBMIT]))
    assert dones.tolist() == [False, True]
    assert [info["turn"] for info in infos] == [1, 2]


def test_masks_are_those_of_each_slot_now(make: Make) -> None:
    env = make()
    env.reset()
    observations, *_ = env.step(np.array([LOCATE, LOCATE]))
    masks = env.env_method("action_masks")
    assert [mask[LOCATE] for mask in masks] == [False, False]
    observations, *_ = env.step(np.array([SUBMIT, RUN_TESTS]))
    masks = env.env_method("action_masks")
    assert [mask[LOCATE] for mask in masks] == [True, False]
    assert [mask[RUN_TESTS] for mask in masks] == [True, False]
    np.testing.assert_array_equal(np.stack(masks), observations["action_mask"])


def test_a_limit_asks_for_no_bootstrap_since_the_patch_is_graded(make: Make) -> None:
    env = make(max_turns=1)
    env.reset()
    _, _, dones, infos = env.step(np.array([LOCATE, LOCATE]))
    assert dones.all()
    for info in infos:
        assert info["stop_reason"] == "max_turns"
        assert info["resolved"] is False
        assert info["TimeLimit.truncated"] is False


def test_our_own_failure_asks_for_a_bootstrap(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make(num_envs=1)
    monkeypatch.setattr(
        "coding_gym.episode.lifecycle.open_sandbox", raising(SandboxError("no more room"))
    )
    env.reset()
    _, rewards, dones, infos = env.step(np.array([SUBMIT]))
    assert dones.all()
    assert rewards.tolist() == [0.0]
    assert infos[0]["mask_sample"] is True
    assert infos[0]["TimeLimit.truncated"] is True


def test_a_slot_plays_as_a_single_env_does(make: Make, make_env: MakeEnv) -> None:
    vec = make()
    single = MenuActions(make_env(max_obs_tokens=32, max_turns=6), K)
    observation, info = single.reset(seed=0)
    np.testing.assert_equal(slot(vec.reset(), 0), observation)
    assert vec.reset_infos[0] == info
    for action in (LOCATE, FIRST, RUN_TESTS, SUBMIT):
        observations, rewards, dones, infos = vec.step(np.array([action, LOCATE]))
        observation, reward, terminated, truncated, info = single.step(action)
        ended = terminated or truncated
        final = infos[0].pop("terminal_observation") if ended else slot(observations, 0)
        np.testing.assert_equal(final, observation)
        assert (rewards[0], dones[0]) == (reward, ended)
        assert infos[0].pop("TimeLimit.truncated") is False
        assert infos[0] == info


def test_a_slot_may_be_asked_by_itself(make: Make) -> None:
    env = make()
    env.reset()
    assert len(env.env_method("action_masks", indices=1)) == 1
    assert env.env_is_wrapped(MenuActions) == [True, True]
    assert env.env_is_wrapped(gym.wrappers.TimeLimit, indices=[0]) == [False]
    assert not env.has_attr("no_such_name")
    env.set_attr("label", "one")
    env.set_attr("label", "other", indices=[1])
    assert env.get_attr("label") == ["one", "other"]


def test_options_and_seeds_hold_for_one_reset(make: Make, tiny_row: dict[str, Any]) -> None:
    env = make()
    other = tiny_row | {"instance_id": "shapes-again"}
    env.set_options({"task": other})
    env.reset()
    assert [info["task_id"] for info in env.reset_infos] == ["shapes-again"] * 2
    env.reset()
    assert [info["task_id"] for info in env.reset_infos] == ["shapes-area"] * 2
    env.set_options([{"task": other}, {}])
    with pytest.raises(InvalidArgumentError, match="same for all"):
        env.reset()


def test_actions_may_be_token_ids(make: Make) -> None:
    env = make(wrappers=[{"name": "TokenActions", "kwargs": {"max_new_tokens": 4}}], max_turns=1)
    first = env.reset()
    observations, _, dones, infos = env.step(np.ones((2, 4), np.int64))
    assert dones.all()
    assert [info["stop_reason"] for info in infos] == ["max_turns"] * 2
    np.testing.assert_equal(slot(observations, 1), slot(first, 1))


def test_text_actions_are_refused(tiny_row: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="MenuActions"):
        make_vec_env(1, tasks=[tiny_row])


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, missing in (
        ("sb3", "stable_baselines3.common.env_util"),
        ("sb3_policy", "sb3_contrib.common.maskable.policies"),
    ):
        monkeypatch.setitem(sys.modules, missing, None)
        monkeypatch.delitem(sys.modules, f"coding_gym.adapters.{name}")
        with pytest.raises(MissingDependencyError, match=r"pip install .*\[sb3\]"):
            importlib.import_module(f"coding_gym.adapters.{name}")


def located(env: CodingRepairVecEnv) -> Any:
    """Returns observations with candidates, as tensors."""
    env.reset()
    observations, *_ = env.step(np.full(env.num_envs, LOCATE))
    return {key: torch.as_tensor(values) for key, values in observations.items()}


def new_policy(env: CodingRepairVecEnv, **kwargs: Any) -> MenuPolicy:
    torch.manual_seed(0)
    return MenuPolicy(env.observation_space, env.action_space, lambda _: 1e-3, **kwargs)


def test_a_candidate_is_judged_by_what_it_is_and_not_by_its_slot(make: Make) -> None:
    env = make(num_envs=1)
    observations, policy = located(env), new_policy(env, embedding_dim=4)
    for parameter in policy.parameters():  # far from the near-uniform start
        torch.nn.init.normal_(parameter, std=0.5)
    order = torch.randperm(K, generator=torch.Generator().manual_seed(1))
    actions = torch.cat([torch.arange(FIRST), FIRST + order])
    shuffled = observations | {
        "candidates": observations["candidates"][:, order],
        "action_mask": observations["action_mask"][:, actions],
    }
    before, after = (
        policy.get_distribution(o).distribution.probs for o in (observations, shuffled)
    )
    torch.testing.assert_close(before[:, actions], after)
    assert before[0, FIRST:].std() > 1e-3
    torch.testing.assert_close(policy.predict_values(observations), policy.predict_values(shuffled))


def test_the_policy_needs_a_menu(make: Make) -> None:
    env = make(num_envs=1)
    space = gym.spaces.Dict(
        {key: env.observation_space[key] for key in ("input_ids", "attention_mask")}
    )
    for other in (space, gym.spaces.Box(0, 1, (4,))):
        with pytest.raises(InvalidArgumentError, match="MenuActions"):
            MenuPolicy(other, env.action_space, lambda _: 1e-3)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"hidden_dim": 0}, "hidden_dim must be an integer of at least 1, got 0"),
        ({"hidden_dim": "64"}, "hidden_dim must be an integer of at least 1, got '64'"),
        ({"embedding_dim": -1}, "embedding_dim, if not 0, must be an integer of at least 1, got"),
        ({"net_arch": [64, 64]}, "whose width is hidden_dim; omit net_arch"),
    ],
)
def test_policy_arguments_are_checked(kwargs: dict[str, Any], message: str, make: Make) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        MaskablePPO(MenuPolicy, make(num_envs=1), policy_kwargs=kwargs, device="cpu")


def test_an_algorithm_without_masks_is_told_of_the_one_that_has_them(make: Make) -> None:
    with pytest.raises(InvalidArgumentError, match=r"MenuPolicy is for sb3_contrib\.MaskablePPO"):
        PPO(MenuPolicy, make(num_envs=1), device="cpu")


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True])
def test_a_seed_is_an_integer_of_at_least_0(seed: Any, tiny_row: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="seed must be an integer of at least 0, got"):
        make_vec_env(1, wrappers=[MENU], tasks=[tiny_row], seed=seed)


def test_padding_does_not_change_the_embedding_of_a_text(make: Make) -> None:
    env = make(num_envs=1)
    extractor = TokenEmbeddingExtractor(env.observation_space, embedding_dim=4)
    observations = located(env)
    ids = torch.zeros(2, 32)
    ids[:, :2] = torch.tensor([7.0, 11.0])
    ids[1, 2:] = 13.0
    mask = torch.zeros(2, 32)
    mask[:, :2] = 1
    two = {key: values.expand(2, *values.shape[1:]) for key, values in observations.items()}
    features = extractor(two | {"input_ids": ids, "attention_mask": mask})
    assert features.shape == (2, extractor.features_dim)
    torch.testing.assert_close(features[0], features[1])
    mean = extractor.embedding(torch.tensor([7, 11])).mean(0)
    torch.testing.assert_close(features[0, :4], mean)


class Watch(BaseCallback):
    """Notes masked actions that were played, and the episodes that ended."""

    def __init__(self) -> None:
        super().__init__()
        self.num_masked = 0
        self.episodes: list[dict[str, Any]] = []

    def _on_step(self) -> bool:
        masks, actions = self.locals["action_masks"], self.locals["actions"]
        self.num_masked += int((~masks[np.arange(len(actions)), actions]).sum())
        self.episodes += [info for info in self.locals["infos"] if "episode" in info]
        return True


@pytest.mark.timeout(900)  # two thousand steps, with a grade at the end of each episode
def test_maskable_ppo_learns_to_repair_the_tiny_task(make: Make, tmp_path: Any) -> None:
    env = VecMonitor(make(num_envs=8))
    model = MaskablePPO(
        MenuPolicy, env, n_steps=32, batch_size=128, learning_rate=3e-3, seed=0, device="cpu"
    )
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    watch = Watch()
    model.learn(2_000, callback=watch)
    assert model.num_timesteps >= 2_000
    assert all(
        not torch.equal(old, new)
        for old, new in zip(before, model.policy.parameters(), strict=True)
    )
    assert watch.num_masked == 0
    assert {"r", "l", "t"} <= watch.episodes[-1]["episode"].keys()
    early, late = watch.episodes[:50], watch.episodes[-50:]
    assert sum(e["resolved"] for e in late) > sum(e["resolved"] for e in early)

    model.save(tmp_path / "model.zip")
    loaded = MaskablePPO.load(tmp_path / "model.zip", device="cpu")
    observations = env.reset()
    masks = np.stack(env.env_method("action_masks"))
    one, other = (
        m.predict(observations, deterministic=True, action_masks=masks)[0] for m in (model, loaded)
    )
    np.testing.assert_array_equal(one, other)


def test_the_example_trains(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = ROOT / "examples" / "train_sb3.py"
    monkeypatch.setattr(sys, "argv", [str(example), "--steps", "64", "--envs", "8"])
    runpy.run_path(str(example), run_name="__main__")
    first, *_, last = capsys.readouterr().out.splitlines()
    num_tasks = len(load_tasks(split="train"))
    assert first.startswith(f"training on {num_tasks} tasks, 8 episodes at once; ")
    assert re.fullmatch(r"done: 64 steps \(.* per second\), \d+ episodes, of the .*: .*%", last)


def test_the_notebook_repairs_its_bug_more_often_in_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runpy.run_path(str(ROOT / "examples" / "notebooks" / "train.py"))
    shares = re.findall(r"steps: (\d+)%", capsys.readouterr().out)
    assert int(shares[-1]) > int(shares[0])
