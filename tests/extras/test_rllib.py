"""The RLlib adapter, and PPO with the module of the examples."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium as gym
import numpy as np
import pytest

from coding_gym.adapters.rllib import GradedReturns, make_vector_env, register
from coding_gym.errors import InvalidArgumentError

pytest.importorskip("ray")

# RLlib registers every algorithm's environment under one id, and Gymnasium warns about it.
pytestmark = [
    pytest.mark.trainer,
    pytest.mark.filterwarnings(
        "ignore:.*Overriding environment rllib-single-agent-env-v0:UserWarning"
    ),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
MAX_TURNS = 3
WRAPPERS = [{"name": "MenuActions", "kwargs": {"num_candidates": 8}}]


@pytest.fixture(scope="module")
def ray_session(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Starts a small local Ray, with one thread for torch and a temporary folder for logs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("PYTHONPATH", str(EXAMPLES))  # Ray itself adds the folder of a script
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        logs = str(tmp_path_factory.mktemp("ray_results"))
        patch.setattr("ray.tune.trainable.trainable.DEFAULT_STORAGE_PATH", logs)
        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
        yield
        ray.shutdown()


@pytest.fixture
def env_config(tiny_row: dict[str, Any]) -> dict[str, Any]:
    return {
        "tasks": [tiny_row],
        "env_wrappers": WRAPPERS,
        "max_turns": MAX_TURNS,
        "max_obs_tokens": 64,
    }


@pytest.fixture
def algorithm(ray_session: None, env_config: dict[str, Any]) -> Iterator[Any]:
    """A PPO algorithm with three envs."""
    from menu_policy import MenuModule
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    module = RLModuleSpec(module_class=MenuModule, model_config={"hidden_size": 16})
    algorithm = (
        PPOConfig()
        .environment(register(), env_config=env_config)
        .env_runners(
            num_env_runners=0,
            num_envs_per_env_runner=3,
            gym_env_vectorize_mode="vector_entry_point",
        )
        .training(train_batch_size_per_learner=24, minibatch_size=12, num_epochs=2)
        .rl_module(rl_module_spec=module)
        .debugging(seed=5)
        .build_algo()
    )
    yield algorithm
    algorithm.stop()


@pytest.mark.usefixtures("ray_session")
def test_smoke_rllib(run_example: Callable[..., list[str]], rows: Any) -> None:
    small = ["--tasks", str(rows), "--iterations", "1", "--steps", "24", "--envs", "2"]
    lines = run_example("train_rllib.py", *small, "--env-runners", "1")
    assert lines[-2].startswith("iteration 1 ")
    assert lines[-1] == "done"


def test_no_transition_is_lost_between_episodes(algorithm: Any, env_config: dict[str, Any]) -> None:
    episodes = algorithm.env_runner.sample(num_episodes=8)
    arguments = {k: v for k, v in env_config.items() if k != "env_wrappers"}
    from coding_gym.wrappers import MenuActions

    env = MenuActions(gym.make("coding_gym:CodingRepair-v0", **arguments), num_candidates=8)
    for episode in episodes:
        infos = episode.get_infos()
        assert [info["turn"] for info in infos] == list(range(len(episode) + 1))
        observation, info = env.reset()
        np.testing.assert_equal(episode.get_observations(0), observation)
        for turn, action in enumerate(episode.get_actions(), 1):
            observation, reward, terminated, truncated, info = env.step(action)
            np.testing.assert_equal(episode.get_observations(turn), observation)
            assert reward == episode.get_rewards(turn - 1)
            assert info["stop_reason"] == infos[turn]["stop_reason"]
            assert (terminated or truncated) == (turn == len(episode))
        assert episode.is_terminated
        assert not episode.is_truncated
    env.close()


def test_sampled_actions_respect_the_masks(algorithm: Any) -> None:
    episodes = algorithm.env_runner.sample(num_episodes=10)
    chosen = []
    for episode in episodes:
        for turn, action in enumerate(episode.get_actions()):
            mask = episode.get_observations(turn)["action_mask"]
            chosen.append((bool(mask.all()), bool(mask[action])))
            logits = episode.get_extra_model_outputs("action_dist_inputs", turn)
            chances = np.exp(logits - logits.max())
            assert np.all(chances[mask == 0] == 0)
            assert np.all(chances[mask == 1] > 0)
    assert not any(allows_all for allows_all, _ in chosen)  # every mask forbids an action
    assert all(is_allowed for _, is_allowed in chosen)


def test_only_masked_ends_stay_truncated() -> None:
    env = mock.MagicMock(spec=gym.vector.VectorEnv, num_envs=4)
    terminated = np.array([False, True, False, False])
    truncated = np.array([False, False, True, True])
    infos = {"mask_sample": np.array([False, False, False, True])}
    env.step.return_value = None, None, terminated, truncated, infos
    _, _, terminated, truncated, _ = GradedReturns(env).step(None)
    assert terminated.tolist() == [False, True, True, False]
    assert truncated.tolist() == [False, False, False, True]


def test_single_environments_are_refused() -> None:
    from ray.rllib.env.env_context import EnvContext

    for config in ({"max_turns": 3}, EnvContext({"num_envs": 2}, worker_index=0)):
        with pytest.raises(InvalidArgumentError, match="vector_entry_point"):
            make_vector_env(config)
