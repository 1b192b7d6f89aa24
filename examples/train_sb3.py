"""Trains MaskablePPO on the menu of repair candidates. Needs: pip install 'coding-gym[sb3]'."""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the network is too small for more threads

from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from coding_gym import load_tasks
from coding_gym.adapters.sb3 import make_vec_env
from coding_gym.adapters.sb3_policy import MenuPolicy


class ResolvedRate(BaseCallback):
    """Prints the share of resolved episodes after every rollout."""

    resolved: tuple[bool, ...] = ()

    def _on_step(self) -> bool:
        infos = self.locals["infos"]
        self.resolved += tuple(info["resolved"] for info in infos if "resolved" in info)
        return True

    def _on_rollout_end(self) -> None:
        rate = sum(self.resolved) / max(1, len(self.resolved))
        print(f"{self.num_timesteps} steps: {rate:.1%} of {len(self.resolved)} episodes resolved")
        self.resolved = ()


def main() -> None:
    """Reads the command line and trains."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--envs", type=int, default=8, help="episodes at once")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    env = make_vec_env(
        arguments.envs,
        wrappers=[{"name": "MenuActions", "kwargs": {"num_candidates": 48}}],
        task_ids=[task.task_id for task in load_tasks(split="train")],
        max_turns=24,
        max_obs_tokens=64,  # MenuPolicy reads numbers, not text, unless it is given an embedding
    )
    model = MaskablePPO(
        MenuPolicy,
        env,
        n_steps=512 // arguments.envs,
        batch_size=256,
        learning_rate=2e-3,
        gamma=0.97,
        ent_coef=0.02,
        target_kl=0.03,
        seed=arguments.seed,
        device="cpu",
    )
    model.learn(arguments.steps, callback=ResolvedRate())  # then model.save("model.zip")
    env.close()


if __name__ == "__main__":
    main()
