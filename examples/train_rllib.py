"""Trains PPO of RLlib on the menu of repair candidates. Needs: pip install 'coding-gym[rllib]'."""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # on small machines torch's threads cost the most

from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from coding_gym import load_tasks
from coding_gym.adapters.rllib import register
from coding_gym.adapters.rllib_module import MenuModule


def main() -> None:
    """Prints the mean return (1 is resolved) after every iteration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--env-runners", type=int, default=0, help="0 samples in this process")
    parser.add_argument("--envs", type=int, default=8, help="episodes at once, per runner")
    parser.add_argument("--steps", type=int, default=256, help="turns per iteration")
    arguments = parser.parse_args()

    env_config = {
        "task_ids": [task.task_id for task in load_tasks("bundled", split="train")],
        "wrappers": [{"name": "MenuActions", "kwargs": {"num_candidates": 48}}],
        "max_turns": 12,
        "max_obs_tokens": 64,  # MenuModule does not read them
    }
    config = (
        PPOConfig()
        .environment(register(), env_config=env_config)
        .env_runners(
            gym_env_vectorize_mode="vector_entry_point",
            num_env_runners=arguments.env_runners,
            num_envs_per_env_runner=arguments.envs,
        )
        .training(
            gamma=0.99,
            lr=1e-3,
            entropy_coeff=0.01,
            train_batch_size_per_learner=arguments.steps,
            minibatch_size=max(1, arguments.steps // 2),
            num_epochs=4,
        )
        .rl_module(rl_module_spec=RLModuleSpec(module_class=MenuModule))
    )
    algorithm = config.build_algo()
    for iteration in range(1, arguments.iterations + 1):
        sampled = algorithm.train()["env_runners"]
        mean = sampled.get("episode_return_mean", float("nan"))  # none ended yet: not there
        print(f"iteration {iteration}: return {mean:.3f}, {sampled['num_episodes']:.0f} episodes")
    algorithm.stop()


if __name__ == "__main__":
    main()
