"""A wrapper that adds weighted parts to the reward of the hidden tests."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import check_arguments, is_number
from coding_gym.envs.snapshot import core_env
from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.rewards import Sample, get_reward
from coding_gym.trajectory import StopReason

_FORM = '[{"name": "patch_similarity", "weight": 0.2}, ...]'


class ShapedReward(
    gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs
):
    """Adds weighted parts to the reward, each under its name in ``info["reward_parts"]``.

    Parts are rewards of `coding_gym.rewards.reward_names`, such as ``patch_similarity`` or
    ``net_fraction_fixed``, added at the end of an episode. They use its patch and grade; no test
    runs again. After an infrastructure failure (``info["mask_sample"]``) there are no parts. If the
    policy tampered with the tests, no part is above 0.

    A resolved episode always earns more than an unresolved one: the sum of all weights, each times
    the range of its reward (1 for most, 2 for rewards from -1 to 1), must be less than 1. Use one
    `ShapedReward` for all parts.

    Args:
        env: A ``CodingRepair-v0`` env, which may be wrapped. Rewards of single tests
            (``net_fraction_fixed``, ``fraction_passed``) need ``challenge="passed"``; rewards of
            the grade need a ``grading`` other than ``"none"``.
        parts: A list of ``{"name": "file_match", "weight": 0.1}``. A negative weight is a penalty.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument is invalid, or does not match the env.
    """

    def __init__(self, env: gym.Env[ObsType, ActType], parts: Sequence[Mapping[str, Any]]) -> None:
        self._core = core_env("ShapedReward", env)
        weights = _weights(parts)
        gym.utils.RecordConstructorArgs.__init__(
            self, parts=[{"name": name, "weight": weight} for name, weight in weights.items()]
        )
        gym.Wrapper.__init__(self, env)
        self._weighted = [(get_reward(name), weight) for name, weight in weights.items()]
        self._check_needs()
        self._check_sum()

    def _check_needs(self) -> None:
        for reward, _ in self._weighted:
            reads_tests = "grade" in reward.needs
            if (reads_tests or "resolved" in reward.needs) and not self._core.config.is_graded:
                raise InvalidArgumentError(
                    f"{reward.name!r} is computed from a grade, got grading='none'; remove the "
                    "part, or make the env with grading='hidden'"
                )
            if reads_tests and self._core.config.challenge != "passed":
                raise InvalidArgumentError(
                    f"{reward.name!r} reads single tests, which the grader verifies only with "
                    f"challenge='passed', got challenge={self._core.config.challenge!r}; make the "
                    "env with challenge='passed'"
                )

    def _check_sum(self) -> None:
        bounds = {reward.name: abs(weight) * reward.span for reward, weight in self._weighted}
        total = math.fsum(bounds.values())
        if total >= 1:
            terms = ", ".join(f"{name} {bound:.3g}" for name, bound in bounds.items())
            raise InvalidArgumentError(
                "the weights of all parts, each times the range of its reward, must sum to less "
                f"than 1, so that a resolved episode earns most, got {total:.3g} ({terms}); lower "
                "some of them"
            )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Starts an episode.

        Raises:
            InvalidTaskError: A part cannot be computed for the task, such as one without a gold
                patch.
        """
        started = self.env.reset(seed=seed, options=options)
        task = self._core.episode.task
        for reward, _ in self._weighted:
            if problem := reward.why_not_computable(task):
                raise InvalidTaskError(
                    f"task {task.task_id} has no reward {reward.name!r}: {problem}; remove the "
                    "part, or choose other tasks with task_ids"
                )
        return started

    def step(self, action: ActType) -> tuple[ObsType, SupportsFloat, bool, bool, dict[str, Any]]:
        """Plays one action; the last one earns the parts."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._core.episode.ended and not info["mask_sample"]:
            parts = self._final_parts()
            reward = float(reward) + sum(parts.values())
            info = {**info, "reward_parts": {**info["reward_parts"], **parts}}
        return observation, reward, terminated, truncated, info

    def _final_parts(self) -> dict[str, float]:
        episode = self._core.episode
        turns = episode.turns
        if episode.stop_reason is StopReason.STOPPED:  # the trainer chose the last action
            turns = turns[:-1]
        schemas = self._core.toolset.schemas
        sample = Sample(episode.task, episode.grade, episode.patch(), turns, schemas)
        parts = {reward.name: weight * reward.value(sample) for reward, weight in self._weighted}
        if sample.is_tampered:  # a negative reward times a negative weight is above 0
            parts = {name: min(part, 0.0) for name, part in parts.items()}
        return {name: float(part) for name, part in parts.items()}


def _weights(parts: Any) -> dict[str, float]:
    """Returns the weights of parts by name.

    Raises:
        InvalidArgumentError, UnknownNameError: ``parts`` is not a list of names and weights.
    """
    if not isinstance(parts, list | tuple) or not parts:
        raise InvalidArgumentError(f"parts must be a list such as {_FORM}, got {parts!r}")
    weights: dict[str, float] = {}
    for number, part in enumerate(parts):
        where = f"parts[{number}]"
        if not isinstance(part, Mapping) or not {"name", "weight"} <= set(part):
            raise InvalidArgumentError(f"{where} must be an object as in {_FORM}, got {part!r}")
        check_arguments(where, part, ("name", "weight"))
        name, weight = get_reward(part["name"]).name, part["weight"]
        if not is_number(weight) or not 0 < abs(weight) < 1:
            raise InvalidArgumentError(
                f"{where}: the weight of {name!r} must be a number between -1 and 1 other than 0, "
                f"got {weight!r}"
            )
        if name in weights:
            raise InvalidArgumentError(f"parts name {name!r} twice; add the weights")
        weights[name] = float(weight)
    return weights
