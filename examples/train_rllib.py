"""Trains PPO of RLlib on the menu of repair candidates. Needs: pip install -e '.[rllib]'."""

import argparse
import math
import os
import time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # more threads of torch slow down a small machine

from coding_gym import load_tasks
from coding_gym.adapters.rllib import register
from coding_gym.optional import missing_extra

try:
    from menu_policy import MenuModule
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
except ImportError:
    raise SystemExit(str(missing_extra("RLlib", "rllib"))) from None


def make_config(arguments: argparse.Namespace, split: str | None) -> Any:
    """Returns the configuration of PPO."""
    env_config = {
        "tasks": arguments.tasks,
        "split": split,
        "env_wrappers": [{"name": "MenuActions", "kwargs": {"num_candidates": 48}}],
        "max_turns": 12,
        "grading": "cached",  # many episodes submit the same patch
        "max_obs_tokens": 64,  # MenuModule does not read the text
    }
    return (
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


def main() -> None:
    """Trains, and prints the fraction of resolved episodes after every iteration."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--tasks", default="bundled", help="a file of tasks, or bundled")
    parser.add_argument("--iterations", type=int, default=10, help="number of policy updates")
    parser.add_argument("--env-runners", type=int, default=0, help="processes; 0: this process")
    parser.add_argument("--envs", type=int, default=8, help="simultaneous episodes per runner")
    parser.add_argument("--steps", type=int, default=256, help="turns per iteration")
    arguments = parser.parse_args()
    split = "train" if arguments.tasks == "bundled" else None
    num_tasks = len(load_tasks(arguments.tasks, split=split))
    print(
        f"training on {num_tasks} tasks, {arguments.envs} simultaneous episodes per runner; "
        f"Ray starts first; a line is printed after every {arguments.steps} turns",
        flush=True,
    )
    algorithm = make_config(arguments, split).build_algo()
    for iteration in range(1, arguments.iterations + 1):
        start_s = time.monotonic()
        metrics = algorithm.train()["env_runners"]
        seconds = time.monotonic() - start_s
        share = metrics.get("episode_return_mean", math.nan)  # nan: no episode has ended
        print(f"iteration {iteration} ({seconds:.0f} s): resolved {share:.1%}", flush=True)
    algorithm.stop()
    print("done", flush=True)


if __name__ == "__main__":
    main()
