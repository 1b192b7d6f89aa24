"""MaskablePPO of Stable-Baselines3 as a learner for `learn.py`."""

from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from menu_episodes import ENV_KWARGS, MENU, Choose
from menu_policy import MenuPolicy
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecMonitor

from coding_gym.adapters.sb3 import CodingRepairVecEnv

PACKAGES = ("sb3-contrib", "stable-baselines3", "torch")
SETTINGS = {
    "learning_rate": 2e-3,
    "n_steps": 64,
    "batch_size": 256,
    "n_epochs": 10,
    "gamma": 0.97,
    "ent_coef": 0.02,
    "target_kl": 0.03,
}
_NUM_ENVS = 8


class Learner:
    """A policy that MaskablePPO trains.

    Args:
        tasks: A file of tasks to train on.
        seed: Seed of tasks, network and actions.
    """

    def __init__(self, tasks: Path, seed: int) -> None:
        torch.set_num_threads(1)
        envs = CodingRepairVecEnv(
            _NUM_ENVS, wrappers=[MENU], tasks=str(tasks), sampler="shuffled", **ENV_KWARGS
        )
        self._env = VecMonitor(envs)  # records rewards of episodes, which SB3 prints
        self._model = MaskablePPO(
            MenuPolicy, self._env, seed=seed, device="cpu", verbose=1, **SETTINGS
        )

    def learn(self, steps: int) -> None:
        """Trains, and prints the mean reward of each rollout, which is the resolved rate."""
        self._model.learn(steps)

    def choose(self, *, is_greedy: bool) -> Choose:
        """Returns the policy; it samples its actions, or takes the most probable actions."""
        policy, lock = self._model.policy, Lock()

        def choose(observation: Any, draws: np.random.Generator) -> int:
            masks = observation["action_mask"].astype(bool)
            with lock, torch.no_grad():  # calls change the policy's distribution
                batch, _ = policy.obs_to_tensor(observation)
                distribution = policy.get_distribution(batch, action_masks=masks).distribution
                probs = distribution.probs.reshape(-1).double().numpy()
            if is_greedy:
                return int(probs.argmax())
            return int(draws.choice(len(probs), p=probs / probs.sum()))

        return choose

    def close(self) -> None:
        """Ends the episodes."""
        self._env.close()
