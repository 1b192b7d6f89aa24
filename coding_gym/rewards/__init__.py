"""Rewards as pure functions of a patch, a grade or turns.

``docs/rewards.md`` lists them. `Reward`, by name from `get_reward`, takes a whole `Sample`.
"""

from coding_gym.rewards.answers import answer_in, categorical_correctness
from coding_gym.rewards.areno import areno
from coding_gym.rewards.calibrated import calibrated_similarity
from coding_gym.rewards.composite import Composite
from coding_gym.rewards.curation import curation_score
from coding_gym.rewards.exploration import Exploration, exploration_efficiency, explored, gold_files
from coding_gym.rewards.matches import diff_size, exact_match, file_match
from coding_gym.rewards.matching import Similarity
from coding_gym.rewards.passing import fraction, progress
from coding_gym.rewards.reasoning import partial_reasoning_format, reasoning_format
from coding_gym.rewards.registry import Reward, get_reward, problem, reward_names
from coding_gym.rewards.sample import Sample
from coding_gym.rewards.search_replace import search_replace_format, search_replace_similarity
from coding_gym.rewards.similarity import (
    patch_similarity,
    patch_similarity_max_files,
    similarity_to_tests,
)
from coding_gym.rewards.swe_rl import swe_rl_similarity
from coding_gym.rewards.terminal import exploration_depth, terminal_habits
from coding_gym.rewards.tool_calls import tool_call_validity

__all__ = [
    "Composite",
    "Exploration",
    "Reward",
    "Sample",
    "Similarity",
    "answer_in",
    "areno",
    "calibrated_similarity",
    "categorical_correctness",
    "curation_score",
    "diff_size",
    "exact_match",
    "exploration_depth",
    "exploration_efficiency",
    "explored",
    "file_match",
    "fraction",
    "get_reward",
    "gold_files",
    "partial_reasoning_format",
    "patch_similarity",
    "patch_similarity_max_files",
    "problem",
    "progress",
    "reasoning_format",
    "reward_names",
    "search_replace_format",
    "search_replace_similarity",
    "similarity_to_tests",
    "swe_rl_similarity",
    "terminal_habits",
    "tool_call_validity",
]
