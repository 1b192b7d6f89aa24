"""A small bug, its menu, and policies that use the menu."""

from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
from episodes import SHELF, as_text

from coding_gym.wrappers import MenuActions
from coding_gym.wrappers.menu_actions import MENU_FEATURES

RUN_TESTS, SUBMIT, TRY = range(3)


def make(num_candidates: int = 8, **arguments: Any) -> MenuActions:
    defaults: dict[str, Any] = {"tasks": [SHELF], "max_obs_tokens": 64}
    return MenuActions(gym.make("CodingRepair-v0", **defaults | arguments), num_candidates)


def menu_feature(observation: dict[str, Any], name: str) -> float:
    return float(observation["menu"][MENU_FEATURES.index(name)])


def play_seeded(env: MenuActions | None = None) -> str:
    """Plays 20 seeded actions, some of them masked, and returns the results as text."""
    if env is None:
        with closing(make()) as new_env:
            return play_seeded(new_env)
    rng = np.random.default_rng(3)
    results = [as_text(*env.reset(seed=5))]
    for _ in range(20):
        outcome = env.step(int(rng.choice([0, 0, 1, *range(2, 10)])))
        results.append(as_text(*outcome))
        if any(outcome[2:4]):
            results.append(as_text(*env.reset()))
    return "\n".join(results)
