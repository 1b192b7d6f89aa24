"""A part of the reward for patches that resemble the gold patch."""

from typing import Any

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.envs import CodingRepairEnv
from coding_gym.errors import InvalidTaskError
from coding_gym.grade import Grade, GradeReason
from coding_gym.rewards import patch_similarity
from coding_gym.wrappers.shaping import Step, add_part, check_shaping, final_grade

_WORTH_NOTHING = (
    GradeReason.EMPTY_PATCH,
    GradeReason.PATCH_NOT_APPLIED,
    GradeReason.TAMPERED,
)


class PatchSimilarityReward(
    gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs
):
    """Adds ``weight`` times the likeness of the patch to the gold patch, as an episode ends.

    The part is ``info["reward_parts"]["patch_similarity"]``; see
    `coding_gym.rewards.patch_similarity`. What is compared is the patch as it was graded: changes
    that grading left out, such as those of tests, do not count. Patches that are empty or do not
    apply, and those that tampered with the tests, add 0. Where our own side failed
    (``info["mask_sample"]``) there is no part.

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

    def __init__(self, env: gym.Env[ObsType, ActType], weight: float = 0.2) -> None:
        core, checked = check_shaping(PatchSimilarityReward, env, weight)
        gym.utils.RecordConstructorArgs.__init__(self, weight=checked)
        gym.Wrapper.__init__(self, env)
        self._core, self._weight = core, checked

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
        task = self._core.task
        if not task.gold_patch.strip():
            raise InvalidTaskError(
                f"task {task.task_id} has no gold patch ('patch'), which PatchSimilarityReward"
                " compares with; leave the wrapper out, or such tasks (task_ids)"
            )
        return started

    def step(self, action: ActType) -> Step[ObsType]:
        """Plays one action; the step that ends the episode has the part added."""
        step = self.env.step(action)
        grade = final_grade(self._core, step)
        if grade is None:
            return step
        return add_part(step, "patch_similarity", self._weight * _likeness(self._core, grade))


def _likeness(core: CodingRepairEnv, grade: Grade) -> float:
    if grade.reason in _WORTH_NOTHING:
        return 0.0
    dropped = set(grade.dropped_paths)
    graded = (f.text for f in core.patch().files if not dropped & {f.old_path, f.new_path})
    return patch_similarity(core.task.gold_patch, "".join(graded))
