"""Best of n: tries branches of one episode from a snapshot, and submits the best branch.

Every branch continues a snapshot of the episode's start, tries one candidate of the repair menu
and runs the visible tests; the branch with the best score submits. The advantage of a branch is its
reward minus the mean reward of several branches.
"""

import argparse
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np

import coding_gym
from coding_gym.wrappers import MenuActions, ShapedReward
from coding_gym.wrappers.menu_actions import MENU_FEATURES

RUN_TESTS, SUBMIT, FIRST_CANDIDATE = range(3)


def best_of(env: MenuActions, start: coding_gym.EnvSnapshot, num_branches: int) -> float:
    """Tries candidates from a snapshot, submits the best candidate, and returns the reward.

    Args:
        env: The environment that plays the branches, one after another.
        start: The snapshot from which all branches continue.
        num_branches: Maximum number of candidates to try.
    """
    branches: list[tuple[float, int, coding_gym.EnvSnapshot]] = []
    coding_gym.restore(env, start)
    candidates = np.flatnonzero(env.action_masks()[FIRST_CANDIDATE:]).tolist()
    for number in candidates[:num_branches]:
        coding_gym.restore(env, start)
        env.step(FIRST_CANDIDATE + number)
        observation, *_ = env.step(RUN_TESTS)
        branches.append((score(observation), -number, coding_gym.snapshot(env)))
        print(f"candidate {number}: score {branches[-1][0]:+.2f}")
    if not branches:
        raise SystemExit("the menu has no candidates for this task; name another with --task")
    value, number, best = max(branches, key=lambda branch: branch[:2])
    coding_gym.restore(env, best)
    _, reward, _, _, info = env.step(SUBMIT)
    print(f"best is candidate {-number} ({value:+.2f}); hidden tests: {info['grade'].reason}")
    return float(reward)


def score(observation: dict[str, Any]) -> float:
    """Returns the fraction of failing tests that the edit fixes, minus 1 if it breaks a test."""
    state = dict(zip(MENU_FEATURES, observation["menu"].tolist(), strict=True))
    return float(state["fraction_fixed"] - state["broke_others"])


def main() -> None:
    """Reads the command line and searches."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", default="cronwise-working-days", help="a bundled task")
    parser.add_argument("--branches", type=int, default=8, help="number of candidates to try")
    arguments = parser.parse_args()
    if arguments.branches < 1:
        parser.error("--branches must be at least 1")
    base: gym.Env[Any, Any] = gym.make("CodingRepair-v0", max_turns=12, challenge="passed")
    shaped = ShapedReward(base, [{"name": "net_fraction_fixed", "weight": 0.4}])
    with closing(MenuActions(shaped, num_candidates=24)) as env:
        env.reset(options={"task_id": arguments.task})
        reward = best_of(env, coding_gym.snapshot(env), arguments.branches)
        print(f"best of {arguments.branches} from the snapshot: reward {reward:.2f}")


if __name__ == "__main__":
    main()
