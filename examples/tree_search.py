"""Best of n: branches of one episode from a snapshot, scored by visible tests, then graded.

Every branch continues a snapshot of the episode's start, tries one candidate of the repair menu
and runs the visible tests; the best branch submits. Then a few branches play random actions until
they end and are graded. The mean of their rewards is the value of the snapshot's state; the reward
of a branch minus this mean is its advantage.
"""

import argparse
import statistics
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np

import coding_gym
from coding_gym.wrappers import MenuActions, ShapedReward
from coding_gym.wrappers.menu_actions import MENU_FEATURES

RUN_TESTS, SUBMIT, FIRST_CANDIDATE = range(3)


def best_of(env: MenuActions, start: coding_gym.EnvSnapshot, num_branches: int) -> float:
    """Tries candidates from one snapshot and submits the best; returns the reward.

    Args:
        env: Plays one branch after the other.
        start: The snapshot from which all branches continue.
        num_branches: Maximum number of candidates to try.
    """
    tried: list[tuple[float, int, coding_gym.EnvSnapshot]] = []
    coding_gym.restore(env, start)
    candidates = np.flatnonzero(env.action_masks()[FIRST_CANDIDATE:]).tolist()
    for number in candidates[:num_branches]:
        coding_gym.restore(env, start)
        env.step(FIRST_CANDIDATE + number)
        observation, *_ = env.step(RUN_TESTS)
        tried.append((score(observation), -number, coding_gym.snapshot(env)))
        print(f"candidate {number}: score {tried[-1][0]:+.2f}")
    if not tried:
        raise SystemExit("the menu has no candidates for this task")
    value, number, taken = max(tried, key=lambda one: one[:2])
    coding_gym.restore(env, taken)
    _, reward, _, _, info = env.step(SUBMIT)
    print(f"best is candidate {-number} ({value:+.2f}); hidden tests: {info['grade'].reason}")
    return float(reward)


def score(observation: dict[str, Any]) -> float:
    """Returns the share of the failing tests that now pass, minus 1 if other tests broke."""
    state = dict(zip(MENU_FEATURES, observation["menu"].tolist(), strict=True))
    return float(state["fraction_fixed"] - state["broke_others"])


def play_randomly(env: gym.Env[Any, Any], rng: np.random.Generator) -> float:
    """Plays a branch to its end with random actions that the mask allows; returns its reward."""
    while True:
        masks = env.get_wrapper_attr("action_masks")()
        _, reward, terminated, truncated, _ = env.step(int(rng.choice(np.flatnonzero(masks))))
        if terminated or truncated:
            return float(reward)


def main() -> None:
    """Reads the command line and searches."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", default="cronwise-working-days", help="a bundled task")
    parser.add_argument("--branches", type=int, default=8, help="candidates to try")
    parser.add_argument("--rollouts", type=int, default=4, help="random branches")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random actions")
    arguments = parser.parse_args()
    if min(arguments.branches, arguments.rollouts) < 1 or arguments.seed < 0:
        parser.error("--branches and --rollouts must be at least 1, --seed at least 0")
    made: gym.Env[Any, Any] = gym.make("CodingRepair-v0", max_turns=12, challenge="passed")
    shaped = ShapedReward(made, [{"name": "net_fraction_fixed", "weight": 0.4}])
    with closing(MenuActions(shaped, num_candidates=24)) as env:
        env.reset(options={"task_id": arguments.task})
        start = coding_gym.snapshot(env)
        reward = best_of(env, start, arguments.branches)
        print(f"best of {arguments.branches} from the snapshot: reward {reward:.2f}")

        rng = np.random.default_rng(arguments.seed)
        rewards = []
        for _ in range(arguments.rollouts):
            coding_gym.restore(env, start)
            rewards.append(play_randomly(env, rng))
        mean = statistics.mean(rewards)
        print(f"random branches from the snapshot: value {mean:.2f}")
        print("advantages:", " ".join(f"{one - mean:+.2f}" for one in rewards))


if __name__ == "__main__":
    main()
