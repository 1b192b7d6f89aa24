"""MaskablePPO of Stable-Baselines3 as a learner for `learn.py`."""

import sys
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from menu_episodes import ENV_KWARGS, MENU, Choose
from menu_policy import MenuPolicy
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

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
_NUM_SLICES = 10  # points of the learning curve


class Learner:
    """A policy that MaskablePPO trains.

    Args:
        tasks: A file of tasks to train on.
        seed: Seed of tasks, network and actions.
    """

    def __init__(self, tasks: Path, seed: int) -> None:
        torch.set_num_threads(1)
        self._env = CodingRepairVecEnv(
            _NUM_ENVS,
            wrappers=[MENU],
            tasks=str(tasks),
            sampler="shuffled",
            **ENV_KWARGS,
        )
        self._model = MaskablePPO(MenuPolicy, self._env, seed=seed, device="cpu", **SETTINGS)

    def learn(self, steps: int) -> list[tuple[int, float]]:
        """Trains; returns steps and resolved rate of each tenth of the training."""
        curve = _Curve()
        self._model.learn(steps, callback=curve)
        return curve.slices(self._model.num_timesteps)

    def choose(self, *, is_greedy: bool) -> Choose:
        """Returns the policy; it samples its actions, or takes the most probable ones."""
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


class _Curve(BaseCallback):
    """Records the end of each training episode, and whether it was resolved."""

    def __init__(self) -> None:
        super().__init__()
        self.episodes: list[tuple[int, bool]] = []

    def _on_step(self) -> bool:
        outcomes = [info["resolved"] for info in self.locals["infos"] if "resolved" in info]
        self.episodes += [(self.num_timesteps, resolved) for resolved in outcomes]
        return True

    def _on_rollout_end(self) -> None:
        recent = [resolved for _, resolved in self.episodes[-200:]]
        share = sum(recent) / max(1, len(recent))
        print(f"{self.num_timesteps} steps, {share:.1%} of {len(recent)} resolved", file=sys.stderr)

    def slices(self, steps: int) -> list[tuple[int, float]]:
        """Returns the resolved rate of the episodes that ended in each slice of training."""
        slices = []
        for number in range(_NUM_SLICES):
            low, high = (round(steps * (number + k) / _NUM_SLICES) for k in (0, 1))
            outcomes = [resolved for step, resolved in self.episodes if low < step <= high]
            share = sum(outcomes) / max(1, len(outcomes))
            slices.append((high, round(share, 4)))
        return slices
