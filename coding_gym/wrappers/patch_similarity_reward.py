"""A part of the reward for patches that resemble the gold patch."""

from typing import Any

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.rewards import Composite, get_reward
from coding_gym.wrappers.shaping import Step, add_parts, check_shaping, check_task, final_parts

_PART = "patch_similarity"


class PatchSimilarityReward(
    gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs
):
    """Adds ``weight`` times the likeness of the patch to the gold patch, as an episode ends.

    The part is ``info["reward_parts"]["patch_similarity"]``; see
    `coding_gym.rewards.patch_similarity`. What is compared is the patch as it was graded: changes
    that grading left out, such as those of tests, do not count. Patches that are empty or do not
    apply, and those that tampered with the tests, add 0. Where our own side failed
    (``info["mask_sample"]``) there is no part. Where patches are so large, or so hard to compare,
    that they were compared by lines, the part is called ``patch_similarity_by_line``.

    Likeness is a weak guide: a change of white space in the right line nearly equals the repair,
    any change of the right file has a header like the gold's, and a good repair that looks
    different scores low. Keep the weight small.

    Args:
        env: A chain around ``CodingRepair-v0``.
        weight: The most that is added, above 0 and below 1; the weights of all reward wrappers of a
            chain sum to less than 1.

    Raises:
        InvalidArgumentError: An argument cannot be used.
    """

    part_names = (_PART,)

    def __init__(self, env: gym.Env[ObsType, ActType], weight: float = 0.2) -> None:
        core, checked = check_shaping(PatchSimilarityReward, env, weight, _PART)
        gym.utils.RecordConstructorArgs.__init__(self, weight=checked)
        gym.Wrapper.__init__(self, env)
        self._core, self._weight = core, checked
        self._composite = Composite(((get_reward(_PART), checked),))

    @property
    def shaping_weight(self) -> float:
        """The most that this wrapper adds to an episode's reward."""
        return self._weight

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Starts an episode.

        Raises:
            InvalidTaskError: The task has no gold patch.
        """
        started = self.env.reset(seed=seed, options=options)
        check_task(PatchSimilarityReward, self._core, self._composite.problem(self._core.task))
        return started

    def step(self, action: ActType) -> Step[ObsType]:
        """Plays one action; the step that ends the episode has the part added."""
        step = self.env.step(action)
        return add_parts(step, final_parts(self._core, step, self._composite))
