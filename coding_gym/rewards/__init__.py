"""Rewards as pure functions of a patch, a grade or turns.

`reward_names` lists all rewards. `get_reward` returns a `Reward` by its name; a `Reward` scores a
`Sample`. `register_reward` adds a reward.
"""

from coding_gym.rewards.coderepairrl import (
    curation_score,
    exploration_depth,
    patch_similarity_max_files,
    terminal_habits,
)
from coding_gym.rewards.edits import exact_match, function_match, line_similarity
from coding_gym.rewards.exploration import exploration_efficiency
from coding_gym.rewards.grades import areno, fraction_passed, net_fraction_fixed
from coding_gym.rewards.registry import get_reward, register_reward, reward_names
from coding_gym.rewards.reward import Reward, Sample
from coding_gym.rewards.similarity import file_match, patch_similarity
from coding_gym.rewards.tool_calls import tool_call_validity

__all__ = [
    "Reward",
    "Sample",
    "areno",
    "curation_score",
    "exact_match",
    "exploration_depth",
    "exploration_efficiency",
    "file_match",
    "fraction_passed",
    "function_match",
    "get_reward",
    "line_similarity",
    "net_fraction_fixed",
    "patch_similarity",
    "patch_similarity_max_files",
    "register_reward",
    "reward_names",
    "terminal_habits",
    "tool_call_validity",
]
