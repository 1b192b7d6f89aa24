"""Trains MaskablePPO on the menu of repair candidates. Needs: pip install -e '.[sb3]'.

The menu repairs three of the bundled tasks; `coding-gym tasks synthesize --show-failing` makes
files of tasks whose bugs are single edits.
"""

import argparse
import math
import os
import time
from collections import deque

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the network is too small for more threads

from coding_gym import load_tasks
from coding_gym.optional import missing_extra

try:
    from menu_policy import MenuPolicy
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.callbacks import BaseCallback

    from coding_gym.adapters.sb3 import make_vec_env
except ImportError:
    raise SystemExit(str(missing_extra("Stable-Baselines3", "sb3"))) from None

REPORT_EVERY_S = 10.0
ROLLOUT_STEPS = 512


class Progress(BaseCallback):
    """Prints the progress of training, about every ten seconds and at the end."""

    def _on_training_start(self) -> None:
        self.start_s = self.last_report = time.monotonic()
        self.num_episodes = 0
        self.recent: deque[bool] = deque(maxlen=100)

    def _on_step(self) -> bool:
        ended = [info["resolved"] for info in self.locals["infos"] if "resolved" in info]
        self.num_episodes += len(ended)
        self.recent.extend(ended)
        if time.monotonic() - self.last_report >= REPORT_EVERY_S:
            self.last_report = time.monotonic()
            self.report("")
        return True

    def _on_training_end(self) -> None:
        self.report("done: ")

    def report(self, prefix: str) -> None:
        """Prints one line."""
        speed = self.num_timesteps / (time.monotonic() - self.start_s)
        rate = sum(self.recent) / max(1, len(self.recent))
        print(
            f"{prefix}{self.num_timesteps} steps ({speed:.1f} per second), {self.num_episodes} "
            f"episodes, resolved {rate:.1%} of the last {len(self.recent)}",
            flush=True,
        )


def main() -> None:
    """Reads the command line and trains."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--tasks", default="bundled", help="a file of tasks, or bundled")
    parser.add_argument("--steps", type=int, default=20_000, help="minimum number of actions")
    parser.add_argument("--envs", type=int, default=8, help="episodes at once")
    parser.add_argument("--seed", type=int, default=0, help="seed of tasks, network and actions")
    arguments = parser.parse_args()
    if min(arguments.steps, arguments.envs) < 1 or arguments.seed < 0:
        parser.error("--steps and --envs must be at least 1, --seed at least 0")
    split = "train" if arguments.tasks == "bundled" else None
    task_ids = [task.task_id for task in load_tasks(arguments.tasks, split=split)]
    steps_each = max(2, math.ceil(min(ROLLOUT_STEPS, arguments.steps) / arguments.envs))
    rollout = steps_each * arguments.envs
    print(
        f"training on {len(task_ids)} tasks, {arguments.envs} episodes at once; progress about "
        f"every {REPORT_EVERY_S:.0f} s, the policy changes every {rollout} steps",
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
        env,
        n_steps=steps_each,
        batch_size=min(256, rollout),
        learning_rate=2e-3,
        gamma=0.97,
        ent_coef=0.02,
        target_kl=0.03,
        seed=arguments.seed,
        device="cpu",
    )
    model.learn(arguments.steps, callback=Progress())  # then model.save("model.zip")
    env.close()


if __name__ == "__main__":
    main()
