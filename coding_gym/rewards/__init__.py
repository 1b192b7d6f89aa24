"""Rewards as pure functions of a patch, a grade or turns.

`reward_names` lists all rewards. `get_reward` returns a `Reward` by its name, which scores a
`Sample`; `register_reward` adds a reward. The formulas of CodeRepairRL and AReno are functions in
`coding_gym.rewards.coderepairrl` and `coding_gym.rewards.areno`.
"""

from coding_gym.rewards.edits import (
    exact_match,
    function_match,
    line_similarity,
)
from coding_gym.rewards.exploration import Exploration, exploration_efficiency, explored, gold_files
from coding_gym.rewards.grades import fraction_passed, net_fraction_fixed
from coding_gym.rewards.registry import (
    get_reward,
    register_reward,
    reward_names,
)
from coding_gym.rewards.reward import Reward, Sample
from coding_gym.rewards.similarity import (
    file_match,
    patch_similarity,
    swe_rl_similarity,
)
from coding_gym.rewards.tool_calls import tool_call_validity

__all__ = [
    "Exploration",
    "Reward",
    "Sample",
    "exact_match",
    "exploration_efficiency",
    "explored",
    "file_match",
    "fraction_passed",
    "function_match",
    "get_reward",
    "gold_files",
    "line_similarity",
    "net_fraction_fixed",
    "patch_similarity",
    "register_reward",
    "reward_names",
    "swe_rl_similarity",
    "tool_call_validity",
]
