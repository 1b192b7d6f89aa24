"""PPO of RLlib as a learner for `learn.py`."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from menu_episodes import ENV_KWARGS, MENU, Choose
from menu_policy import MenuModule
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from coding_gym.adapters.rllib import register

PACKAGES = ("ray", "torch")
SETTINGS = {
    "gamma": 0.97,
    "lr": 2e-3,
    "entropy_coeff": 0.01,
    "train_batch_size_per_learner": 512,
    "minibatch_size": 256,
    "num_epochs": 10,
}
_NUM_ENVS = 8


class Learner:
    """A policy that PPO of RLlib trains, in this process.

    Args:
        tasks: A file of tasks to train on.
        seed: Seed of tasks, network and actions.
    """

    def __init__(self, tasks: Path, seed: int) -> None:
        choice = {"tasks": str(tasks), "sampler": "shuffled", "env_wrappers": [MENU]}
        config = (
            PPOConfig()
            .environment(register(), env_config={**choice, **ENV_KWARGS})
            .env_runners(
                gym_env_vectorize_mode="vector_entry_point",
                num_env_runners=0,
                num_envs_per_env_runner=_NUM_ENVS,
            )
            .training(**SETTINGS)
            .rl_module(rl_module_spec=RLModuleSpec(module_class=MenuModule))
            .debugging(seed=seed)
        )
        self._algorithm = config.build_algo()

    def learn(self, steps: int) -> None:
        """Trains, and prints the resolved rate of the last 100 episodes after each iteration."""
        num_steps = 0
        while num_steps < steps:
            results = self._algorithm.train()["env_runners"]
            num_steps = int(results["num_env_steps_sampled_lifetime"])
            print(f"{num_steps} steps, resolved: {results.get('episode_return_mean', 0.0):.1%}")

    def choose(self, *, is_greedy: bool) -> Choose:
        """Returns the policy; it samples its actions, or takes the most probable actions."""
        module = self._algorithm.get_module()

        def choose(observation: Any, draws: np.random.Generator) -> int:
            batch = {k: torch.from_numpy(np.asarray(v))[None] for k, v in observation.items()}
            with torch.no_grad():
                output = module.forward_inference({Columns.OBS: batch})
            probs = output[Columns.ACTION_DIST_INPUTS][0].double().softmax(0).numpy()
            return int(probs.argmax() if is_greedy else draws.choice(len(probs), p=probs))

        return choose

    def close(self) -> None:
        """Ends the episodes."""
        self._algorithm.stop()
