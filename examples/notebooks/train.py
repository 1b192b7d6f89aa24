"""Trains a policy on one bug.

A notebook: Jupyter with Jupytext, and VS Code, open its cells. In a clone,
``python examples/notebooks/train.py`` runs it in a minute or two.

Needs: pip install -e '.[sb3]'
"""

# %%
import os
import sys

os.environ["OMP_NUM_THREADS"] = "1"  # before torch: more threads slow down a small network
sys.path += ["..", "examples"]  # for menu_policy, from this folder or the clone

from menu_policy import MenuPolicy
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecMonitor

from coding_gym.adapters.sb3 import CodingRepairVecEnv

# %% [markdown]
# ## Episodes as choices among numbers
#
# `MenuActions` numbers the actions of a repair: try an edit, run the visible tests, submit.
# Four episodes run at the same time, each in a separate sandbox.

# %%
env = VecMonitor(
    CodingRepairVecEnv(
        4,
        wrappers=[{"name": "MenuActions", "kwargs": {"num_candidates": 12}}],
        task_ids=["cronwise-working-days"],
        max_turns=12,
        max_obs_tokens=64,  # the policy reads numbers, not text
        grading="cached",  # grades each patch once
    )
)
observation = env.reset()
print({name: values.shape for name, values in observation.items()})

# %% [markdown]
# ## PPO with action masks
#
# The reward is 1 for a patch that passes the hidden tests, else 0, so the mean reward of the last
# episodes is the resolved rate. For other bugs, replace `task_ids` with `tasks="bugs.jsonl"`.

# %%
model = MaskablePPO(
    MenuPolicy,
    env,
    learning_rate=2e-3,
    n_steps=64,
    batch_size=256,
    ent_coef=0.02,
    seed=0,
    device="cpu",
)
for _ in range(4):
    model.learn(512, reset_num_timesteps=False)
    returns = [episode["r"] for episode in model.ep_info_buffer]
    share = sum(returns) / len(returns)
    print(f"{model.num_timesteps} steps: {share:.0%} of the last {len(returns)} episodes resolved")
env.close()
