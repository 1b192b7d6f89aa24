"""A small bug, its menu, and what policies of these tests do with it."""

from typing import Any

import gymnasium as gym
import numpy as np
from comparison import as_text

from coding_gym.wrappers import MenuActions
from coding_gym.wrappers.menu_actions import MENU_FEATURES

LOCATE, VIEW, RUN_TESTS, SUBMIT, TRY = range(5)
HIDDEN = (
    "--- /dev/null\n+++ b/tests/test_more.py\n@@ -0,0 +1,8 @@\n"
    "+import pytest\n+\n+from shelf import Shelf\n+\n+\n"
    "+def test_a_shelf_of_none():\n+    with pytest.raises(ValueError):\n+        Shelf(0).put(1)\n"
)
ROW: dict[str, Any] = {
    "instance_id": "shelf-size",
    "problem_statement": "A shelf of 1 takes two things.",
    "files": {
        "shelf.py": (
            "class Shelf:\n"
            "    def __init__(self, size):\n"
            "        self.size = size\n"
            "        self.things = []\n\n"
            "    def put(self, thing):\n"
            "        if len(self.things) > self.size:\n"
            "            raise ValueError(thing)\n"
            "        self.things.append(thing)\n"
        ),
        "tests/test_shelf.py": (
            "import pytest\n\nfrom shelf import Shelf\n\n\n"
            "def test_put():\n    shelf = Shelf(2)\n    shelf.put(1)\n"
            "    assert shelf.things == [1]\n\n\n"
            "def test_full():\n    shelf = Shelf(1)\n    shelf.put(1)\n"
            "    with pytest.raises(ValueError):\n        shelf.put(2)\n"
        ),
    },
    "test_patch": HIDDEN,
    "FAIL_TO_PASS": ["tests/test_more.py::test_a_shelf_of_none"],
    "PASS_TO_PASS": ["tests/test_shelf.py::test_put"],
    "created_at": "2024-01-01T00:00:00Z",
}


def make(num_candidates: int = 8, **arguments: Any) -> MenuActions:
    defaults: dict[str, Any] = {"tasks": [ROW], "max_obs_tokens": 64}
    return MenuActions(gym.make("CodingRepair-v0", **defaults | arguments), num_candidates)


def solve(env: MenuActions, **reset: Any) -> list[tuple[Any, ...]]:
    """Plays the plain strategy: locate, then try and test candidates in order until all pass."""
    env.reset(**reset)
    outcomes = [env.step(LOCATE)]
    number = 0
    while env.action_masks()[TRY + number]:
        outcomes += [env.step(TRY + number), env.step(RUN_TESTS)]
        number += 1
        if menu(outcomes[-1][0], "passed_all") or any(outcomes[-1][2:4]):
            break
    outcomes.append(env.step(SUBMIT))
    return outcomes


def menu(observation: dict[str, Any], name: str) -> float:
    return float(observation["menu"][MENU_FEATURES.index(name)])


def play_seeded(env: MenuActions) -> str:
    """Plays 20 seeded actions, some of them masked, over as many episodes as that takes."""
    rng = np.random.default_rng(3)
    seen = [as_text(*env.reset(seed=5))]
    for _ in range(20):
        outcome = env.step(int(rng.choice([0, 1, 2, 2, 3, *range(4, 12)])))
        seen.append(as_text(*outcome))
        if any(outcome[2:4]):
            seen.append(as_text(*env.reset()))
    return "\n".join(seen)
