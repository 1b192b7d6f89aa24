"""Rewards that are added as an episode ends: several by name, or one of the two most used."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
from gymnasium.core import ActType, ObsType

from coding_gym.arguments import unknown_name
from coding_gym.envs import CodingRepairEnv
from coding_gym.errors import InvalidArgumentError, MachineryError
from coding_gym.grading.grading_files import read_files
from coding_gym.process_cache import ProcessCache
from coding_gym.rewards import Composite, Sample, get_reward, gold_files
from coding_gym.sandbox import open_sandbox
from coding_gym.trajectory import StopReason
from coding_gym.wrappers.shaping import (
    Step,
    add_parts,
    check_chain,
    check_task,
    check_weight,
)

MEASURES = ("progress", "fraction", "net_fraction_fixed", "fraction_passed")
"""The rewards that `TestPassReward` takes as its measure; the first two are aliases."""


class _FinalReward(
    gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs
):
    """Adds the parts of a `Composite` in the step that ends an episode."""

    shaping_weight = 0.0
    part_names: tuple[str, ...] = ()

    def _wrap(self, env: gym.Env[ObsType, ActType], composite: Composite, **arguments: Any) -> None:
        """Checks the chain, and records the constructor's arguments."""
        self._core = check_chain(type(self), env, composite.bound, composite.names)
        tests = composite.that_need("grade")
        graded = tests + composite.that_need("resolved")
        if graded and self._core.grading == "none":
            raise InvalidArgumentError(
                f"{type(self).__name__}: {graded[0]!r} is computed from a grade, and there is none "
                "with grading='none'; leave it out, or make the env with grading='hidden'"
            )
        gym.utils.RecordConstructorArgs.__init__(self, **arguments)
        gym.Wrapper.__init__(self, env)
        self._composite = composite
        if tests:
            self._core.challenge = "passed"
        self.shaping_weight, self.part_names = composite.bound, composite.names
        self._base_files: Mapping[str, str] = {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Starts an episode.

        Raises:
            InvalidTaskError: The task lacks what a reward compares with, such as a gold patch.
        """
        started = self.env.reset(seed=seed, options=options)
        check_task(type(self), self._core, self._composite.why_not_computable(self._core.task))
        self._base_files = {}
        if self._composite.that_need("base_files"):
            try:
                self._base_files = _base_files(self._core)
            except MachineryError as failure:
                self._core.episode.discard_sandbox(failure)
        return started

    def step(self, action: ActType) -> Step[ObsType]:
        """Plays one action; the step that ends the episode has the parts added."""
        step = self.env.step(action)
        _, _, terminated, truncated, info = step
        if not (terminated or truncated) or info["mask_sample"]:
            return step
        episode = self._core.episode
        turns = episode.turns
        if episode.stop_reason is StopReason.STOPPED:  # the last is the trainer's, not the policy's
            turns = turns[:-1]
        sample = Sample(
            episode.task,
            episode.grade,
            self._core.patch(),
            turns,
            self._core.toolset.schemas,
            self._base_files,
        )
        return add_parts(step, self._composite.parts(sample))


class CompositeReward(_FinalReward[ObsType, ActType]):
    """Adds a weighted sum of rewards, as an episode ends.

    Each of them is a part of ``info["reward_parts"]``, by its name, with ``_by_line`` behind it
    where texts were compared by lines rather than by characters. The names are those of
    `coding_gym.rewards.reward_names`; ``docs/wrappers.md`` says what most of them measure, and how
    a policy could game them. Where our own side failed (``info["mask_sample"]``) there are no
    parts, and where the tests were tampered with none is above 0.

    In an env with ``grading="none"`` no test runs: the whole patch is compared, and rewards that
    are computed from a grade are refused. With rewards that read single tests the env's
    ``challenge`` is ``"passed"``, as for `TestPassReward`: each test that earns something is
    challenged.

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
        written = [{"name": reward.name, "weight": w} for reward, w in composite.weighted]
        self._wrap(env, composite, parts=written)


class PatchSimilarityReward(_FinalReward[ObsType, ActType]):
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

    def __init__(self, env: gym.Env[ObsType, ActType], weight: float = 0.2) -> None:
        checked = check_weight(weight)
        composite = Composite(((get_reward("patch_similarity"), checked),))
        self._wrap(env, composite, weight=checked)


class TestPassReward(_FinalReward[ObsType, ActType]):
    """Adds ``weight`` times a measure of the hidden tests to the reward that ends an episode.

    The part is ``info["reward_parts"]["test_pass"]``. It comes from the grade that the episode has
    anyway: no test runs a second time. Empty patches, patches that do not apply, and runs that took
    too long or were tampered with add 0. Where our own side failed (``info["mask_sample"]``) there
    is no part.

    Args:
        env: A chain around ``CodingRepair-v0``.
        weight: The most that is added, above 0 and below 1; the weights of all reward wrappers of a
            chain sum to less than 1.
        measure: ``"progress"`` (an alias of `net_fraction_fixed`): tests fixed less tests broken,
            relative to the tests to fix; or ``"fraction"`` (`fraction_passed`): the share of all
            expected tests that pass, which also pays for patches that change no behaviour.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument cannot be used.
    """

    __test__ = False  # pytest collects classes called Test*

    def __init__(
        self, env: gym.Env[ObsType, ActType], weight: float = 0.2, measure: str = "progress"
    ) -> None:
        checked = check_weight(weight)
        if measure not in MEASURES:
            raise unknown_name("measure", measure, MEASURES)
        reward = replace(get_reward(measure), name="test_pass")
        self._wrap(env, Composite(((reward, checked),)), weight=checked, measure=measure)


_base_texts = ProcessCache[Mapping[str, str]]()


def _base_files(core: CodingRepairEnv) -> Mapping[str, str]:
    """Returns the texts at base of the files that the gold patch changes.

    Raises:
        SandboxError: The machinery failed.
    """
    template, backend = core.episode.template, core.episode.sandbox.name
    if template is None:  # it could not be built: the first action will end the episode
        return {}
    gold, spec = core.task.gold_patch, template.spec

    def read() -> Mapping[str, str]:
        with open_sandbox(spec, backend=backend) as sandbox:
            found = read_files(sandbox, sorted(gold_files(gold)))
        # As patches hold bytes that are not UTF-8.
        return {path: data.decode("utf-8", "surrogateescape") for path, data in found.items()}

    return _base_texts.get((backend, spec.image, template.key, gold), read)
