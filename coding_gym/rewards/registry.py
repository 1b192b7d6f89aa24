"""Rewards by name, alone or as a weighted sum that can be written down as JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from coding_gym.arguments import check_arguments, is_number, unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.grade import GradeReason
from coding_gym.rewards import areno, coderepairrl
from coding_gym.rewards.edits import (
    calibrated_similarity,
    diff_size,
    exact_match,
    function_match,
    line_similarity,
)
from coding_gym.rewards.exploration import exploration_efficiency, gold_files
from coding_gym.rewards.grades import fraction_passed, net_fraction_fixed
from coding_gym.rewards.reward import NEEDS, Reward, Sample
from coding_gym.rewards.similarity import (
    FORMAT_ERROR,
    Similarity,
    file_match,
    patch_similarity,
    swe_rl_similarity,
)
from coding_gym.rewards.tool_calls import tool_call_validity
from coding_gym.task import Task

BY_LINE = "_by_line"
"""The end of a part's name where texts were compared by lines, not by characters."""

_FORM = '[{"name": "file_match", "weight": 0.1}, ...]'


def _swe_rl(sample: Sample) -> float:
    if sample.grade and sample.grade.reason is GradeReason.PATCH_NOT_APPLIED:
        return FORMAT_ERROR
    change = sample.graded
    return swe_rl_similarity(sample.task.gold_patch, change) if change.strip() else 0.0


def _function_match(sample: Sample) -> float:
    if not sample.graded.strip():
        return 0.0
    return function_match(sample.task.gold_patch, sample.graded, sample.base_files)


_GOLD = ("gold_patch",)

_CORE = (
    Reward.of_grade("net_fraction_fixed", net_fraction_fixed),
    Reward.of_grade("fraction_passed", fraction_passed),
    Reward.of_change("calibrated_similarity", calibrated_similarity),
    Reward.of_change("patch_similarity", patch_similarity),
    Reward.of_change("line_similarity", line_similarity),
    Reward(name="swe_rl_similarity", score=_swe_rl, lowest=-1.0, needs=_GOLD),
    Reward.of_change("exact_match", exact_match),
    Reward(name="function_match", score=_function_match, needs=("gold_patch", "base_files")),
    Reward.of_change("file_match", file_match),
    Reward.of_change("diff_size", diff_size, lowest=-1.0),
    Reward(name="tool_call_validity", score=lambda s: tool_call_validity(s.turns, s.schemas)),
    Reward(
        name="exploration_efficiency",
        score=lambda s: exploration_efficiency(gold_files(s.task.gold_patch), s.turns),
        needs=_GOLD,
    ),
)
_REWARDS = {reward.name: reward for reward in (*_CORE, *coderepairrl.REWARDS, *areno.REWARDS)}
# Names of earlier versions; parts of ``info["reward_parts"]`` keep the name that was asked for.
_ALIASES = {"progress": "net_fraction_fixed", "fraction": "fraction_passed"}


def register_reward(reward: Reward) -> None:
    """Makes a reward available by its name, in this process.

    Raises:
        InvalidArgumentError: Another reward has the name, or an attribute cannot be used.
    """
    if not isinstance(reward.name, str) or not reward.name.isidentifier():
        raise InvalidArgumentError(f"the name of a reward must be a word, got {reward.name!r}")
    bounds = (reward.lowest, reward.highest)
    if not all(is_number(b) and math.isfinite(b) for b in bounds) or bounds[0] >= bounds[1]:
        raise InvalidArgumentError(
            f"reward {reward.name!r} must have finite bounds, the lowest below the highest, "
            f"got {bounds}"
        )
    for need in reward.needs:
        if need not in NEEDS:
            raise unknown_name("need of a reward", need, NEEDS)
    if reward.name in _ALIASES or _REWARDS.setdefault(reward.name, reward) is not reward:
        raise InvalidArgumentError(f"there is already a reward named {reward.name!r}")


def get_reward(name: str) -> Reward:
    """Returns a reward, by its name or an alias.

    Raises:
        UnknownNameError: There is none of that name.
    """
    reward = _REWARDS.get(_ALIASES.get(name, name)) if isinstance(name, str) else None
    if reward is None:
        raise unknown_name("reward", name, _REWARDS)
    return replace(reward, name=name)


def reward_names() -> tuple[str, ...]:
    """Returns the names of all rewards, sorted, without aliases.

    >>> "file_match" in reward_names()
    True
    """
    return tuple(sorted(_REWARDS))


@dataclass(frozen=True, slots=True)
class Composite:
    """A weighted sum of rewards.

    Attributes:
        weighted: Each reward with its weight.
    """

    weighted: tuple[tuple[Reward, float], ...]

    @classmethod
    def parse(cls, parts: Sequence[Mapping[str, Any]]) -> Self:
        """Makes a composite of a JSON list.

        Args:
            parts: Objects with a ``name`` of `reward_names` and a ``weight``, maybe a negative one.

        Raises:
            InvalidArgumentError, UnknownNameError: The list cannot be used; the message names the
                entry.

        >>> composite = Composite.parse([{"name": "file_match", "weight": 0.1}])
        >>> composite.bound
        0.1
        """
        if isinstance(parts, str | Mapping) or not isinstance(parts, Sequence) or not parts:
            raise InvalidArgumentError(f"parts must be a list such as {_FORM}, got {parts!r}")
        weighted = tuple(_entry(number, part) for number, part in enumerate(parts))
        names = [_ALIASES.get(reward.name, reward.name) for reward, _ in weighted]
        twice = next((name for name in names if names.count(name) > 1), "")
        if twice:
            raise InvalidArgumentError(f"parts name {twice!r} twice; add up its weights")
        return cls(weighted)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rewards."""
        return tuple(reward.name for reward, _ in self.weighted)

    @property
    def bound(self) -> float:
        """The most by which the sums of two episodes differ.

        Below 1 an episode that leaves the bug unresolved earns less than one that resolves it.
        """
        return math.fsum(abs(weight) * reward.span for reward, weight in self.weighted)

    def that_need(self, need: str) -> tuple[str, ...]:
        """Returns the names of the rewards that need one of `NEEDS`, such as ``"grade"``."""
        return tuple(reward.name for reward, _ in self.weighted if need in reward.needs)

    def why_not_computable(self, task: Task) -> str:
        """Returns why the rewards cannot be computed for a task, or ""."""
        for reward, _ in self.weighted:
            if why := reward.why_not_computable(task):
                return f"{why}, which {reward.name!r} compares with"
        return ""

    def parts(self, sample: Sample) -> dict[str, float]:
        """Returns what each reward adds for an episode; they sum to the composite.

        A score that was computed by lines has a name of its own: the reward's and `BY_LINE`. Where
        the tests were tampered with no part is above 0, whatever the sign of its weight.

        Raises:
            InvalidArgumentError: A reward gave a value that is not in its range.
        """
        parts = {}
        for reward, weight in self.weighted:
            value = reward.measured(sample)
            is_marked = isinstance(value, Similarity) and value.by_line
            part = float(weight * value)
            # Bounded with its weight: a penalty times a negative weight would be above 0.
            parts[reward.name + BY_LINE * is_marked] = (
                min(part, 0.0) if sample.is_tampered else part
            )
        return parts


def _entry(number: int, part: Any) -> tuple[Reward, float]:
    where = f"parts[{number}]"
    if not isinstance(part, Mapping):
        raise InvalidArgumentError(f"{where} must be an object as in {_FORM}, got {part!r}")
    check_arguments(where, part, ("name", "weight"))
    missing = [key for key in ("name", "weight") if key not in part]
    if missing:
        raise InvalidArgumentError(f"{where} has no {missing[0]!r}; write it as in {_FORM}")
    reward, weight = get_reward(part["name"]), part["weight"]
    if not is_number(weight) or not 0 < abs(weight) < 1:
        way_out = "; leave the part out" if is_number(weight) and weight == 0 else ""
        raise InvalidArgumentError(
            f"{where}: the weight of {reward.name!r} must be a number between -1 and 1, "
            f"got {weight!r}{way_out}"
        )
    return reward, float(weight)
