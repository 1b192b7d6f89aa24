"""A wrapper that adds weighted parts to the reward of the hidden tests."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import check_arguments, is_number
from coding_gym.envs.coding_repair import closes_on_error
from coding_gym.envs.snapshot import core_env, snapshot_in
from coding_gym.errors import (
    InfrastructureError,
    InvalidArgumentError,
    InvalidTaskError,
    PatchError,
)
from coding_gym.rewards import Sample, get_reward
from coding_gym.trajectory import StopReason
from coding_gym.wrappers.visible_tests import RUNNER, potential

VISIBLE_TESTS = "visible_tests"
"""The part that is added at every turn."""

_FORM = '[{"name": "patch_similarity", "weight": 0.2}, ...]'


class ShapedReward(
    gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs
):
    """Adds weighted parts to the reward, each under its name in ``info["reward_parts"]``.

    *At the end*: any reward of `coding_gym.rewards.reward_names`, such as ``patch_similarity`` or
    ``net_fraction_fixed``. These parts use the patch and the grade of the episode and run no
    tests. After an infrastructure failure (``info["mask_sample"]``) the reward has no parts. If the
    policy tampered with the tests, none of these parts is above 0.

    *At every turn*: ``visible_tests`` adds ``weight * (gamma * potential after - potential
    before)``. The potential of a tree is its fraction of passing visible tests minus this fraction
    of the base tree; the potential is 0 at the start and after the end. The ``visible_tests`` parts
    of an episode, discounted by ``gamma``, sum to 0, so the optimal policy does not change. The
    tests run as for a grade, in a clean sandbox with the files of the base, after each turn that
    changed the tree. After an infrastructure failure in such a run, the next action ends the
    episode, with ``mask_sample``.
    Source: Ng, Harada and Russell, "Policy invariance under reward transformations", ICML 1999.

    A resolved episode earns more than an unresolved episode: the sum of all weights, each times
    the range of its reward (1 for most, 2 for rewards from -1 to 1), must be less than 1. Use one
    `ShapedReward` for all parts.

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not. Rewards of single tests
            (``net_fraction_fixed``, ``fraction_passed``) need ``challenge="passed"``; rewards of
            the grade need a ``grading`` other than ``"none"``.
        parts: A list of ``{"name": "file_match", "weight": 0.1}``. A negative weight is a penalty.
        gamma: The discount of the training, above 0 and at most 1, for ``visible_tests``. Below 1
            the undiscounted sum of these parts is not 0; the bound of this sum, which counts in the
            sum of the weights, grows with the env's ``max_turns``.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument is invalid, or does not match the env.
    """

    def __init__(
        self,
        env: gym.Env[ObsType, ActType],
        parts: Sequence[Mapping[str, Any]],
        gamma: float = 1.0,
    ) -> None:
        self._core = core_env("ShapedReward", env)
        weights = _weights(parts)
        if not is_number(gamma) or not 0 < gamma <= 1:
            raise InvalidArgumentError(f"gamma must be above 0 and at most 1, got {gamma!r}")
        gym.utils.RecordConstructorArgs.__init__(
            self,
            parts=[{"name": name, "weight": weight} for name, weight in weights.items()],
            gamma=float(gamma),
        )
        gym.Wrapper.__init__(self, env)
        self._gamma = float(gamma)
        self._visible_weight = weights.pop(VISIBLE_TESTS, 0.0)
        self._rewards = [(get_reward(name), weight) for name, weight in weights.items()]
        self._check_needs()
        self._check_sum()
        self._potential = 0.0
        self._visible_part: float | None = None  # of the last turn
        self._potentials: dict[str, float] = {}  # by patch, of this episode

    def _check_needs(self) -> None:
        for reward, _ in self._rewards:
            needs_tests = "grade" in reward.needs
            if (needs_tests or "resolved" in reward.needs) and not self._core.config.is_graded:
                raise InvalidArgumentError(
                    f"{reward.name!r} is computed from a grade, got grading='none'; remove the "
                    "part, or make the env with grading='hidden'"
                )
            if needs_tests and self._core.config.challenge != "passed":
                raise InvalidArgumentError(
                    f"{reward.name!r} reads single tests, which the grader verifies only with "
                    f"challenge='passed', got challenge={self._core.config.challenge!r}; make the "
                    "env with challenge='passed'"
                )

    def _check_sum(self) -> None:
        bounds = {reward.name: abs(weight) * reward.span for reward, weight in self._rewards}
        if self._visible_weight:
            span = _visible_span(self._gamma, self._core.config.limits.max_turns)
            bounds[VISIBLE_TESTS] = abs(self._visible_weight) * span
        total = math.fsum(bounds.values())
        if total >= 1:
            terms = ", ".join(f"{name} {bound:.3g}" for name, bound in bounds.items())
            raise InvalidArgumentError(
                "the absolute weights of all parts, each times the range of its reward, must sum "
                "to less than 1, so that a resolved episode earns more than an unresolved episode, "
                f"got {total:.3g} ({terms}); use weights closer to 0"
            )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Starts an episode; a snapshot also restores the potential of its tree.

        Raises:
            InvalidTaskError: A part cannot be computed for the task: it has no gold patch, or its
                visible tests do not run with pytest.
        """
        snapshot = snapshot_in(options)
        observation, info = self.env.reset(seed=seed, options=options)
        with closes_on_error(self._core):
            self._check_task()
        state = None if snapshot is None else snapshot.state_of(self)
        self._potential, self._visible_part = state or (0.0, None)
        self._potentials = {}
        if self._visible_part is not None:
            info = _with_parts(info, {VISIBLE_TESTS: self._visible_part})
        return observation, info

    def _check_task(self) -> None:
        task = self._core.episode.task
        problems = {reward.name: reward.why_not_computable(task) for reward, _ in self._rewards}
        if self._visible_weight and task.runner != RUNNER:
            problems[VISIBLE_TESTS] = f"its tests run with {task.runner!r}, not {RUNNER!r}"
        for name, problem in problems.items():
            if problem:
                raise InvalidTaskError(
                    f"reward {name!r} cannot be computed for task {task.task_id}: {problem}; "
                    "remove this part, or select other tasks with task_ids"
                )

    def step(self, action: ActType) -> tuple[ObsType, SupportsFloat, bool, bool, dict[str, Any]]:
        """Plays one action and adds the parts to its reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if info["mask_sample"]:
            return observation, reward, terminated, truncated, info
        parts: dict[str, float] = {}
        if self._visible_weight:
            parts[VISIBLE_TESTS] = self._next_visible_part()
        if self._core.episode.ended:
            parts |= self._final_parts()
        total = float(reward) + sum(parts.values())
        return observation, total, terminated, truncated, _with_parts(info, parts)

    def snapshot_state(self) -> tuple[float, float | None]:
        """Returns the tree's potential and the last ``visible_tests`` part, for snapshots."""
        return self._potential, self._visible_part

    def _final_parts(self) -> dict[str, float]:
        episode = self._core.episode
        turns = episode.turns
        if episode.stop_reason is StopReason.STOPPED:  # the trainer chose the last action
            turns = turns[:-1]
        schemas = self._core.toolset.schemas
        sample = Sample(episode.task, episode.grade, self._core.episode.patch(), turns, schemas)
        parts = {reward.name: weight * reward.value(sample) for reward, weight in self._rewards}
        if sample.is_tampered:  # a negative reward times a negative weight is above 0
            parts = {name: min(part, 0.0) for name, part in parts.items()}
        return {name: float(part) for name, part in parts.items()}

    def _next_visible_part(self) -> float:
        last_potential = self._potential
        self._potential = 0.0 if self._core.episode.ended else self._current_potential()
        weight = 0.0 if self._core.episode.task.impossible_test else self._visible_weight
        self._visible_part = weight * (self._gamma * self._potential - last_potential)
        return self._visible_part

    def _current_potential(self) -> float:
        """Returns the tree's potential; after an infrastructure failure, the last potential."""
        episode = self._core.episode
        if episode.template is None or not episode.turns[-1].calls:
            return self._potential
        try:
            patch = episode.patch()
            if patch.text not in self._potentials:
                self._potentials[patch.text] = potential(
                    episode.task, episode.template, patch, episode.config.sandbox.name
                )
            return self._potentials[patch.text]
        except PatchError:  # the patch is too large to be graded
            return 0.0
        except InfrastructureError as failure:
            episode.discard_sandbox(failure)
            return self._potential


def _weights(parts: Any) -> dict[str, float]:
    """Returns the weights of parts by name.

    Raises:
        InvalidArgumentError, UnknownNameError: ``parts`` is not a list of names and weights.
    """
    if not isinstance(parts, list | tuple) or not parts:
        raise InvalidArgumentError(f"parts must be a list such as {_FORM}, got {parts!r}")
    weights: dict[str, float] = {}
    for number, part in enumerate(parts):
        label = f"parts[{number}]"
        if not isinstance(part, Mapping) or not {"name", "weight"} <= set(part):
            raise InvalidArgumentError(f"{label} must be an object as in {_FORM}, got {part!r}")
        check_arguments(label, part, ("name", "weight"))
        name, weight = part["name"], part["weight"]
        name = name if name == VISIBLE_TESTS else get_reward(name).name
        if not is_number(weight) or not 0 < abs(weight) < 1:
            raise InvalidArgumentError(
                f"{label}: the weight of {name!r} must be a number between -1 and 1 other than 0, "
                f"got {weight!r}"
            )
        if name in weights:
            raise InvalidArgumentError(f"parts must have {name!r} once, got two; sum the weights")
        weights[name] = float(weight)
    return weights


def _visible_span(gamma: float, max_turns: int | None) -> float:
    """Returns the bound of the undiscounted sum of ``visible_tests`` per unit of weight.

    With ``gamma`` 1 the sum is always 0; the bound is 1, which still limits the weight.
    """
    if gamma == 1:
        return 1.0
    if max_turns is None:
        raise InvalidArgumentError("gamma below 1 needs max_turns, got None; set max_turns")
    return max(1.0, 2 * (1 - gamma) * max_turns)


def _with_parts(info: dict[str, Any], parts: Mapping[str, float]) -> dict[str, Any]:
    return {**info, "reward_parts": {**info["reward_parts"], **parts}}
