"""Several rewards as one, from a list that can be written down as JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from coding_gym.arguments import check_arguments, is_number
from coding_gym.errors import InvalidArgumentError
from coding_gym.grade import GradeReason
from coding_gym.rewards.matching import Similarity
from coding_gym.rewards.registry import Reward, get_reward, problem
from coding_gym.rewards.sample import Sample
from coding_gym.task import Task

BY_LINE = "_by_line"
"""What the name of a part ends with where texts were compared by lines, not by characters."""

_FORM = '[{"name": "file_match", "weight": 0.1}, ...]'


@dataclass(frozen=True, slots=True)
class Composite:
    """A weighted sum of rewards.

    Attributes:
        weighted: Each reward with its weight.
    """

    weighted: tuple[tuple[Reward, float], ...]

    @classmethod
    def parse(cls, parts: Sequence[Mapping[str, Any]]) -> Self:
        """Makes a composite of what a JSON list says.

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
        names = [reward.name for reward, _ in weighted]
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

        Below 1 nothing that leaves a bug unresolved can earn as much as what resolves it.
        """
        return math.fsum(abs(weight) * reward.span for reward, weight in self.weighted)

    def problem(self, task: Task) -> str:
        """Returns what keeps a task from being rewarded, or ""."""
        found = ((reward.name, problem(reward, task)) for reward, _ in self.weighted)
        return next((f"{why}, which {name!r} compares with" for name, why in found if why), "")

    def parts(self, sample: Sample) -> dict[str, float]:
        """Returns what each reward adds for an episode; they sum to the composite.

        A score that was taken by lines has a name of its own: `BY_LINE` behind the reward's. Where
        the tests were tampered with no part is above 0, whatever the sign of its weight.
        """
        parts = {}
        for reward, weight in self.weighted:
            value = reward.score(sample)
            is_marked = isinstance(value, Similarity) and value.by_line
            part = float(weight * value)
            # Bounded with its weight: a fine times a negative weight would be a prize.
            is_tampered = sample.grade.reason is GradeReason.TAMPERED
            parts[reward.name + BY_LINE * is_marked] = min(part, 0.0) if is_tampered else part
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
