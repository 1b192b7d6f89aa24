"""Trains MaskablePPO on the menu of repair candidates. Needs: pip install -e '.[sb3]'.

The menu repairs three of the bundled tasks; `coding-gym tasks synthesize --show-failing` makes
files of tasks whose bugs are single edits.
"""

import argparse
import math
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the network is too small for more threads

from coding_gym import load_tasks
from coding_gym.optional import missing_extra

try:
    from menu_policy import MenuPolicy
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.vec_env import VecMonitor

    from coding_gym.adapters.sb3 import make_vec_env
except ImportError:
    raise SystemExit(str(missing_extra("Stable-Baselines3", "sb3"))) from None

ROLLOUT_STEPS = 512


def main() -> None:
    """Reads the command line and trains."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--tasks", default="bundled", help="a file of tasks, or bundled")
    parser.add_argument("--task", help="only this task")
    parser.add_argument("--steps", type=int, default=20_000, help="minimum number of actions")
    parser.add_argument("--envs", type=int, default=8, help="episodes at once")
    parser.add_argument("--seed", type=int, default=0, help="seed of tasks, network and actions")
    arguments = parser.parse_args()
    if min(arguments.steps, arguments.envs) < 1 or arguments.seed < 0:
        parser.error("--steps and --envs must be at least 1, --seed at least 0")
    split = "train" if arguments.tasks == "bundled" and not arguments.task else None
    tasks = load_tasks(arguments.tasks, task_ids=arguments.task, split=split)
    task_ids = [task.task_id for task in tasks]
    steps_each = max(2, math.ceil(min(ROLLOUT_STEPS, arguments.steps) / arguments.envs))
    rollout = steps_each * arguments.envs
    print(
        f"training on {len(task_ids)} tasks, {arguments.envs} episodes at once; the policy changes "
        f"every {rollout} steps, and ep_rew_mean is the share of resolved episodes",
        flush=True,
    )
    env = make_vec_env(
        arguments.envs,
        wrappers=[{"name": "MenuActions", "kwargs": {"num_candidates": 48}}],
        tasks=arguments.tasks,
        task_ids=task_ids,
        max_turns=24,
        grading="cached",  # the menu has few patches, so they repeat
        max_obs_tokens=64,  # MenuPolicy reads numbers, not text
    )
    model = MaskablePPO(
        MenuPolicy,
        VecMonitor(env),
        n_steps=steps_each,
        batch_size=min(256, rollout),
        learning_rate=2e-3,
        gamma=0.97,
        ent_coef=0.02,
        target_kl=0.03,
        seed=arguments.seed,
        device="cpu",
        verbose=1,
    )
    model.learn(arguments.steps)  # then model.save("model.zip")
    env.close()


if __name__ == "__main__":
    main()
