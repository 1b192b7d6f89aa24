"""Partial rollouts: episodes stop for an update of the weights and continue with new weights.

Each round collects a limited number of turns per episode. Running episodes are saved to files, the
trainer updates the weights, and the next round loads the files, so no update waits for slow
episodes. Every turn records the version of the weights that sampled it, so a trainer can weight or
mask its tokens. The policy of this example is a list of commands; a real policy samples them.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import gymnasium as gym

import coding_gym
from coding_gym.adapters.samples import training_example

COMMANDS = ["git log --oneline | head -3", "ls", "git status --short", "python -m pytest -q"]


def act(turn: int, version: int) -> coding_gym.Completion:
    """Returns the policy's next action, with the version of its weights."""
    if turn == len(COMMANDS):
        call: dict[str, Any] = {"name": "submit", "arguments": {}}
    else:
        call = {"name": "shell", "arguments": {"cmd": COMMANDS[turn]}}
    text = f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
    return coding_gym.Completion(text, weight_version=version)


def play(env: gym.Env[Any, Any], info: dict[str, Any], num_turns: int, version: int) -> bool:
    """Plays a limited number of turns; returns whether the episode has ended."""
    for _ in range(num_turns):
        *_, terminated, truncated, info = env.step(act(info["turn"], version))
        if terminated or truncated:
            return True
    return False


def main() -> None:
    """Collects a few episodes in rounds, and prints the versions in their training examples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=2)
    parser.add_argument("--turns-per-round", type=int, default=2)
    arguments = parser.parse_args()
    # The training example has the layout of this format's chat template.
    env = gym.make("CodingRepair-v0", tool_format="hermes")
    with tempfile.TemporaryDirectory() as folder:
        episodes: dict[int, Path | None] = dict.fromkeys(range(arguments.episodes))
        version = 0
        while episodes:
            for number, path in list(episodes.items()):
                if path is None:
                    _, info = env.reset(seed=number)
                else:  # a different process can continue it too
                    snapshot = coding_gym.EnvSnapshot.load(path, env)
                    _, info = env.reset(options={"snapshot": snapshot})
                if play(env, info, arguments.turns_per_round, version):
                    del episodes[number]
                    core: Any = env.unwrapped
                    example = training_example(core.episode.trajectory(), include_inexact=True)
                    tokens, versions = sum(example["env_mask"]), example["weight_versions"]
                    print(f"episode {number}: {tokens} sampled tokens, versions {versions}")
                else:
                    episodes[number] = saved = Path(folder) / f"{number}.zip"
                    coding_gym.snapshot(env).save(saved)
            version += 1  # the trainer has updated the weights
    env.close()


if __name__ == "__main__":
    main()
