"""Several rewards at once, by name and weight."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.rewards import Composite
from coding_gym.wrappers.shaping import Step, add_parts, check_chain, check_task, final_parts


class CompositeReward(
    gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs
):
    """Adds a weighted sum of rewards, as an episode ends.

    Each of them is a part of ``info["reward_parts"]``, by its name, with ``_by_line`` behind it
    where texts were compared by lines rather than by characters. The names are those of
    `coding_gym.rewards.reward_names`; ``docs/rewards.md`` says what they measure, and what a policy
    would do for them. Where our own side failed (``info["mask_sample"]``) there are no parts, and
    where the tests were tampered with none is above 0.

    Args:
        env: A chain around ``CodingRepair-v0``.
        parts: A list of ``{"name": "file_match", "weight": 0.1}``. Negative weights fine what the
            reward measures. The weights, each times how far the values of its reward may be apart
            (1 for most, 2 for those from -1 to 1), and those of all other reward wrappers of the
            chain, sum to less than 1: any resolved episode earns more than any other.

    Raises:
        InvalidArgumentError, UnknownNameError: The parts cannot be used.
    """

    def __init__(self, env: gym.Env[ObsType, ActType], parts: Sequence[Mapping[str, Any]]) -> None:
        composite = Composite.parse(parts)
        self._core = check_chain(CompositeReward, env, composite.bound, composite.names)
        written = [{"name": reward.name, "weight": w} for reward, w in composite.weighted]
        gym.utils.RecordConstructorArgs.__init__(self, parts=written)
        gym.Wrapper.__init__(self, env)
        self._composite = composite

    @property
    def shaping_weight(self) -> float:
        """The most by which the parts set two episodes apart."""
        return self._composite.bound

    @property
    def part_names(self) -> tuple[str, ...]:
        """Names of the parts."""
        return self._composite.names

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Starts an episode.

        Raises:
            InvalidTaskError: The task lacks what a reward compares with.
        """
        started = self.env.reset(seed=seed, options=options)
        check_task(CompositeReward, self._core, self._composite.problem(self._core.task))
        return started

    def step(self, action: ActType) -> Step[ObsType]:
        """Plays one action; the step that ends the episode has the parts added."""
        step = self.env.step(action)
        return add_parts(step, final_parts(self._core, step, self._composite))
