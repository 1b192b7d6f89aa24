"""A reward at every turn for visible tests that a change makes pass, taken back at the end."""

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import is_number
from coding_gym.errors import InvalidArgumentError, MachineryError, PatchError
from coding_gym.grade import GradeReason, TestStatus
from coding_gym.grading import grade
from coding_gym.grading.grading_files import read_files, roomier
from coding_gym.grading.pytest_config import CONFIG_FILES, collection_patterns
from coding_gym.grading.runners import get_runner
from coding_gym.grading.selection import path_matcher
from coding_gym.patch import Patch
from coding_gym.process_cache import ProcessCache
from coding_gym.sandbox import open_sandbox
from coding_gym.task import Task
from coding_gym.workspace import Template
from coding_gym.wrappers.chain import snapshot_in
from coding_gym.wrappers.shaping import (
    Step,
    add_parts,
    check_chain,
    check_task,
    check_weight,
)

_RUNNER = "pytest"  # the only runner whose tests are found by their files
_PART = "visible_tests"
_MAX_FILES = 100
_LIST = "find . -type f -name '*.py' -not -path './.git/*'"


class VisibleTestShaping(
    gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs
):
    """Adds ``weight * (gamma * potential after - potential before)`` to the reward of every turn.

    The potential of a tree is the number of visible tests that pass with it, less those that pass
    at base, as a share of all: 0 at the start, and 0 by definition once the episode has ended. So
    the parts of an episode sum to 0, discounted by ``gamma``: they show early which change was
    good, and never change what is best. The tree's own tests run, not the hidden ones, with the
    base's files, in a clean sandbox as for a grade (`coding_gym.grading`): editing the tests, their
    configuration or the shell's output changes nothing. They run after turns that changed the tree,
    which then take about as long as a grade.

    The part is ``info["reward_parts"]["visible_tests"]``, also where it is 0. Where our own side
    fails the episode is given up: the next action ends it, masked.

    Source: Ng, Harada and Russell, "Policy invariance under reward transformations", ICML 1999.

    Args:
        env: A chain around ``CodingRepair-v0``; its tasks run with pytest.
        weight: What all visible tests together are worth, above 0 and below 1.
        gamma: The discount of the training, above 0 and at most 1. Below 1 the plain sum of the
            parts is not 0; the share of the chain's weights that this takes grows with the env's
            ``max_turns``.

    Raises:
        InvalidArgumentError: An argument cannot be used.
    """

    part_names = (_PART,)
    shaping_weight = 0.0

    def __init__(
        self, env: gym.Env[ObsType, ActType], weight: float = 0.2, gamma: float = 1.0
    ) -> None:
        checked = check_weight(weight)
        core = check_chain(VisibleTestShaping, env, checked, (_PART,))
        if not is_number(gamma) or not 0 < gamma <= 1:
            raise InvalidArgumentError(f"gamma must be a number above 0 up to 1, got {gamma!r}")
        max_turns = core.limits.max_turns
        most = checked * _spread(float(gamma), max_turns)
        if most >= 1:
            raise InvalidArgumentError(
                f"VisibleTestShaping with weight {checked:g}, gamma {gamma:g} and max_turns "
                f"{max_turns} can set the plain sums of two episodes {most:.3g} apart, which "
                "must be less than 1, what a resolved bug earns; raise gamma, or lower weight or "
                "max_turns"
            )
        check_chain(VisibleTestShaping, env, most, (_PART,))
        gym.utils.RecordConstructorArgs.__init__(self, weight=checked, gamma=float(gamma))
        gym.Wrapper.__init__(self, env)
        self.shaping_weight = most  # also of plain sums, without a discount
        self._core, self._weight, self._gamma = core, checked, float(gamma)
        self._potential = 0.0
        self._part: float | None = None  # of the last step
        self._known: dict[str, float] = {}  # potentials of this episode's patches

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Starts an episode; one that begins at a snapshot goes on with the potential it had.

        Raises:
            InvalidTaskError: The task's tests do not run with pytest.
        """
        snapshot = snapshot_in(options)
        observation, info = self.env.reset(seed=seed, options=options)
        runner = self._core.task.runner
        problem = "" if runner == _RUNNER else f"its tests run with {runner!r}, not {_RUNNER!r}"
        check_task(VisibleTestShaping, self._core, problem)
        state = snapshot.state_of(self) if snapshot is not None else None
        self._potential, self._part = state or (0.0, None)
        self._known = {}
        if self._part is not None:  # of the last step before the snapshot
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
        return add_parts(step, {_PART: self._part})

    def snapshot_state(self) -> tuple[float, float | None]:
        """Returns the potential of the tree and the last part, for snapshots."""
        return self._potential, self._part

    def _measured(self) -> float:
        """The potential of the tree as it is; as before where it cannot be measured."""
        episode = self._core.episode
        template = episode.template
        if template is None or not episode.turns[-1].calls:
            return self._potential
        try:
            patch = episode.patch()
            if patch.text not in self._known:
                self._known[patch.text] = _potential(
                    episode.task, template, patch, episode.sandbox.name
                )
            return self._known[patch.text]
        except PatchError:  # a tree too large to be graded
            return 0.0
        except MachineryError as failure:
            episode.discard_sandbox(failure)
            return self._potential


def _spread(gamma: float, max_turns: int | None) -> float:
    """By how many times the weight the plain sums of two episodes may be apart."""
    if gamma == 1:
        return 1.0  # they are not; but what is weighed against the end should not outweigh it
    if max_turns is None:
        raise InvalidArgumentError(f"gamma={gamma:g} needs a bound on turns; give max_turns")
    return max(1.0, 2 * (1 - gamma) * max_turns)


def _potential(task: Task, template: Template, patch: Patch, backend: str) -> float:
    """Returns how many more of the visible tests pass with a patch, as a share of all, -1 to 1.

    The patch is graded as the hidden tests grade it (`coding_gym.grading.grade`): in a clean
    sandbox, without its changes of tests and of their configuration, and challenged.

    Raises:
        GradingError, SandboxError: The machinery failed.
    """
    expected = get_runner(_RUNNER).files(task)
    at_base = _at_base.get(
        (backend, template.spec.image, template.key, expected),
        lambda: _run_at_base(task, template, backend),
    )
    if not at_base or patch.is_empty:
        return 0.0
    visible = replace(task, test_patch="", fail_to_pass=(), pass_to_pass=tuple(at_base))
    verdict = grade(visible, template, patch, backend=backend)
    if verdict.reason is GradeReason.EMPTY_PATCH:  # nothing but tests was changed
        return 0.0
    is_measured = verdict.reason in (GradeReason.RESOLVED, GradeReason.TESTS_FAILED)
    after = verdict.pass_to_pass if is_measured else {}
    return (_num_passed(after) - _num_passed(at_base)) / len(at_base)


_at_base = ProcessCache[Mapping[str, TestStatus]]()


def _run_at_base(task: Task, template: Template, backend: str) -> Mapping[str, TestStatus]:
    """Returns the status of every visible test of the base tree; none where the run does not end.

    They are those in the tree's test files, by pytest's patterns; in a tree with more than 100
    such files only those in the files of the expected tests.
    """
    runner = get_runner(_RUNNER)
    with open_sandbox(roomier(template.spec), backend=backend) as sandbox:
        found = read_files(sandbox, CONFIG_FILES)
        configs = {name: data.decode("utf-8", "replace") for name, data in found.items()}
        is_test = path_matcher(collection_patterns(configs))
        listed = sandbox.run(_LIST, timeout_s=task.grading_timeout_s).output.splitlines()
        paths = sorted(path for path in map(posixpath.normpath, listed) if is_test(path))
        if len(paths) > _MAX_FILES:
            paths = sorted(set(paths) & set(runner.files(task)))
        report = runner.run(sandbox, task, tuple(paths), timeout_s=task.grading_timeout_s)
    if not paths or report is None or not report.ended:
        return {}
    ran = (TestStatus.PASSED, TestStatus.FAILED, TestStatus.ERROR)
    return {test: status for test, status in report.statuses.items() if status in ran}


def _num_passed(statuses: Mapping[str, TestStatus]) -> int:
    return sum(status is TestStatus.PASSED for status in statuses.values())
