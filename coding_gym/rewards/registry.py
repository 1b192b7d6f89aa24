"""Finds and registers rewards by name."""

import math

from coding_gym.arguments import is_number, unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.rewards.coderepairrl import (
    curation_score,
    exploration_depth,
    patch_similarity_max_files,
    terminal_habits,
)
from coding_gym.rewards.edits import exact_match, function_match, line_similarity
from coding_gym.rewards.exploration import exploration_efficiency
from coding_gym.rewards.grades import areno, fraction_passed, net_fraction_fixed
from coding_gym.rewards.reward import NEEDS, Reward, Sample
from coding_gym.rewards.similarity import file_match, patch_similarity
from coding_gym.rewards.tool_calls import tool_call_validity


def _curation_score(sample: Sample) -> float:
    task, patch = sample.task, sample.patch
    return curation_score(task.gold_patch, task.test_patch, patch) if patch.strip() else 0.0


_BUILT_IN = (
    Reward.of_grade("net_fraction_fixed", net_fraction_fixed),
    Reward.of_grade("fraction_passed", fraction_passed),
    Reward.of_change("patch_similarity", patch_similarity),
    Reward.of_change("patch_similarity_max_files", patch_similarity_max_files),
    Reward.of_change("line_similarity", line_similarity),
    Reward.of_change("exact_match", exact_match),
    Reward.of_change("function_match", function_match),
    Reward.of_change("file_match", file_match),
    Reward(
        name="test_patch_similarity",
        score=lambda s: patch_similarity_max_files(s.task.test_patch, s.patch),
        needs=("test_patch",),
    ),
    Reward(name="curation_score", score=_curation_score, needs=("gold_patch", "test_patch")),
    Reward(name="tool_call_validity", score=lambda s: tool_call_validity(s.turns, s.schemas)),
    Reward(name="terminal_habits", score=lambda s: terminal_habits(s.turns)),
    Reward(name="exploration_depth", score=lambda s: exploration_depth(s.turns)),
    Reward(
        name="exploration_efficiency",
        score=lambda s: exploration_efficiency(s.task.gold_patch, s.turns),
        needs=("gold_patch",),
    ),
    Reward(
        name="areno",
        score=lambda s: areno(s.grade, s.turns) if s.grade else 0.0,
        lowest=-1.0,
        needs=("resolved",),
    ),
)
_REWARDS = {reward.name: reward for reward in _BUILT_IN}


def register_reward(reward: Reward) -> None:
    """Makes a reward available by its name, in this process.

    Raises:
        InvalidArgumentError: Another reward has this name, or the name or a bound is invalid.
        UnknownNameError: ``needs`` has a name that is not in `NEEDS`.
    """
    if not isinstance(reward.name, str) or not reward.name.isidentifier():
        raise InvalidArgumentError(f"a reward's name must be an identifier, got {reward.name!r}")
    bounds = (reward.lowest, reward.highest)
    if not all(is_number(b) and math.isfinite(b) for b in bounds) or bounds[0] >= bounds[1]:
        raise InvalidArgumentError(
            f"lowest and highest of reward {reward.name!r} must be finite, and lowest must be "
            f"less than highest, got {bounds}"
        )
    for need in reward.needs:
        if need not in NEEDS:
            raise unknown_name("value of 'needs'", need, NEEDS)
    if _REWARDS.setdefault(reward.name, reward) is not reward:
        raise InvalidArgumentError(f"a reward named {reward.name!r} exists; use another name")


def get_reward(name: str) -> Reward:
    """Returns a reward by its name.

    Raises:
        UnknownNameError: No reward has this name.
    """
    reward = _REWARDS.get(name) if isinstance(name, str) else None
    if reward is None:
        raise unknown_name("reward", name, _REWARDS)
    return reward


def reward_names() -> tuple[str, ...]:
    """Returns the names of all rewards, sorted.

    >>> "file_match" in reward_names()
    True
    """
    return tuple(sorted(_REWARDS))
