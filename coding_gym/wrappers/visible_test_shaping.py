"""A reward at every turn for visible tests that a change makes pass, taken back at the end."""

from typing import Any

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import is_number
from coding_gym.errors import InvalidArgumentError, MachineryError, PatchError
from coding_gym.wrappers.chain import snapshot_in
from coding_gym.wrappers.shaping import Step, add_part, check_chain, check_shaping, check_task
from coding_gym.wrappers.visible_tests import RUNNER, visible_tests

_PART = "visible_tests"


class VisibleTestShaping(
    gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs
):
    """Adds ``weight * (gamma * potential after - potential before)`` to the reward of every turn.

    The potential of a tree is the number of visible tests that pass with it, less those that pass
    at base, as a share of all: 0 at the start, and 0 by definition once the episode has ended. So
    the parts of an episode sum to 0, discounted by ``gamma``: they tell early which change was
    good, and never what is best. Tests of the tree's own, not the hidden ones, are run, with the
    files that the base has, in a clean sandbox as a grade is (`coding_gym.grading`): editing the
    tests, their configuration or what the shell prints changes nothing. They run after turns that
    changed the tree, which then take about as long as a grade.

    The part is ``info["reward_parts"]["visible_tests"]``, also where it is 0. Where our own side
    fails the episode is given up: the next action ends it, masked.

    Source: Ng, Harada and Russell, "Policy invariance under reward transformations", ICML 1999.

    Args:
        env: A chain around ``CodingRepair-v0``; its tasks run with pytest.
        weight: What all visible tests together are worth, above 0 and below 1.
        gamma: The discount of whoever trains, above 0 and at most 1. Below 1 the plain sum of the
            parts is not 0; the share of the chain's weights that this takes grows with the env's
            ``max_turns``.

    Raises:
        InvalidArgumentError: An argument cannot be used.
    """

    part_names = (_PART,)

    def __init__(
        self, env: gym.Env[ObsType, ActType], weight: float = 0.2, gamma: float = 1.0
    ) -> None:
        core, checked = check_shaping(VisibleTestShaping, env, weight, _PART)
        if not is_number(gamma) or not 0 < gamma <= 1:
            raise InvalidArgumentError(f"gamma must be a number above 0 up to 1, got {gamma!r}")
        max_turns = core.limits.max_turns
        self._most = checked * _spread(float(gamma), max_turns)
        if self._most >= 1:
            raise InvalidArgumentError(
                f"VisibleTestShaping with weight {checked:g}, gamma {gamma:g} and max_turns "
                f"{max_turns} can set the plain sums of two episodes {self._most:.3g} apart, which "
                "must be less than 1, what a resolved bug earns; raise gamma, or lower weight or "
                "max_turns"
            )
        check_chain(VisibleTestShaping, env, self._most, (_PART,))
        gym.utils.RecordConstructorArgs.__init__(self, weight=checked, gamma=float(gamma))
        gym.Wrapper.__init__(self, env)
        self._core, self._weight, self._gamma = core, checked, float(gamma)
        self._potential = 0.0
        self._part: float | None = None  # of the last step
        self._known: dict[str, float] = {}  # potentials of this episode's patches

    @property
    def shaping_weight(self) -> float:
        """The most by which the parts set two episodes apart, also for who does not discount."""
        return self._most

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Starts an episode; one that begins at a snapshot goes on with the potential it had.

        Raises:
            InvalidTaskError: The task's tests do not run with pytest.
        """
        moment = snapshot_in(options)
        observation, info = self.env.reset(seed=seed, options=options)
        runner = self._core.task.runner
        problem = "" if runner == RUNNER else f"its tests run with {runner!r}, not {RUNNER!r}"
        check_task(VisibleTestShaping, self._core, problem)
        state = moment.state_of(self) if moment is not None else None
        self._potential, self._part = state or (0.0, None)
        self._known = {}
        if self._part is not None:  # what the last step before the snapshot said
            info = {**info, "reward_parts": {**info["reward_parts"], _PART: self._part}}
        return observation, info

    def step(self, action: ActType) -> Step[ObsType]:
        """Plays one action; what it changed in the visible tests is added to its reward."""
        step = self.env.step(action)
        _, _, terminated, truncated, info = step
        if info["mask_sample"]:
            return step
        before = self._potential
        self._potential = 0.0 if terminated or truncated else self._measured()
        self._part = self._weight * (self._gamma * self._potential - before)
        return add_part(step, _PART, self._part)

    def snapshot_state(self) -> tuple[float, float | None]:
        """Returns the potential of the tree and the last part, for snapshots."""
        return self._potential, self._part

    def _measured(self) -> float:
        """The potential of the tree as it is; as before where that cannot be told."""
        episode = self._core.episode
        template = episode.template
        if template is None or not episode.turns[-1].calls:
            return self._potential
        try:
            patch = episode.patch()
            if patch.text not in self._known:
                backend = episode.sandbox.name
                tests = visible_tests(episode.task, template, backend=backend)
                self._known[patch.text] = tests.potential(
                    episode.task, template, patch, backend=backend
                )
            return self._known[patch.text]
        except PatchError:  # a tree too large to be graded, which the end will say too
            return 0.0
        except MachineryError as failure:
            episode.lose(failure)
            return self._potential


def _spread(gamma: float, max_turns: int | None) -> float:
    """By how many times the weight the plain sums of two episodes may be apart."""
    if gamma == 1:
        return 1.0  # they are not; but what is weighed against the end should not outweigh it
    if max_turns is None:
        raise InvalidArgumentError(f"gamma={gamma:g} needs a bound on turns; give max_turns")
    return max(1.0, 2 * (1 - gamma) * max_turns)
