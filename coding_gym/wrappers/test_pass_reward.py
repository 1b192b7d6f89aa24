"""A part of the reward for hidden tests that pass."""

from collections.abc import Callable

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import unknown_name
from coding_gym.grade import Grade
from coding_gym.rewards import fraction, progress
from coding_gym.wrappers.shaping import Step, add_part, check_shaping, final_grade

MEASURES: dict[str, Callable[[Grade], float]] = {"fraction": fraction, "progress": progress}
"""How to measure what a grade is worth, by name."""


_PART = "test_pass"


class TestPassReward(
    gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs
):
    """Adds ``weight`` times a measure of the hidden tests to the reward that ends an episode.

    The part is ``info["reward_parts"]["test_pass"]``. It comes from the grade that the episode has
    anyway: no test runs a second time. Empty patches, patches that do not apply, and runs that took
    too long or were tampered with add 0. Where our own side failed (``info["mask_sample"]``) there
    is no part.

    Args:
        env: A chain around ``CodingRepair-v0``.
        weight: The most that is added, above 0 and below 1; the weights of all reward wrappers of a
            chain sum to less than 1.
        measure: ``"progress"``: tests repaired less tests broken, relative to the tests to repair;
            or ``"fraction"``: the part of all expected tests that pass, which also pays for patches
            that change no behaviour. See `coding_gym.rewards`.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument cannot be used.
    """

    part_names = (_PART,)
    __test__ = False  # pytest collects classes called Test*

    def __init__(
        self,
        env: gym.Env[ObsType, ActType],
        weight: float = 0.2,
        measure: str = "progress",
    ) -> None:
        core, checked = check_shaping(TestPassReward, env, weight, _PART)
        if measure not in MEASURES:
            raise unknown_name("measure", measure, MEASURES)
        gym.utils.RecordConstructorArgs.__init__(self, weight=checked, measure=measure)
        gym.Wrapper.__init__(self, env)
        self._core, self._weight = core, checked
        self._measure = MEASURES[measure]

    @property
    def shaping_weight(self) -> float:
        """The most that this wrapper adds to an episode's reward."""
        return self._weight

    def step(self, action: ActType) -> Step[ObsType]:
        """Plays one action; the step that ends the episode has the part added."""
        step = self.env.step(action)
        grade = final_grade(self._core, step)
        if grade is None:
            return step
        return add_part(step, _PART, self._weight * self._measure(grade))
