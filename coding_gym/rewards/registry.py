"""Rewards by name, for composites that are written down."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from coding_gym.arguments import unknown_name
from coding_gym.errors import PatchError
from coding_gym.grade import GradeReason
from coding_gym.patch import Patch
from coding_gym.rewards.answers import categorical_correctness
from coding_gym.rewards.areno import areno
from coding_gym.rewards.calibrated import calibrated_similarity
from coding_gym.rewards.curation import curation_score
from coding_gym.rewards.exploration import exploration_efficiency, gold_files
from coding_gym.rewards.matches import diff_size, exact_match, file_match
from coding_gym.rewards.passing import fraction, progress
from coding_gym.rewards.reasoning import partial_reasoning_format, reasoning_format
from coding_gym.rewards.runs import changed_runs
from coding_gym.rewards.sample import Sample
from coding_gym.rewards.search_replace import search_replace_format, search_replace_similarity
from coding_gym.rewards.similarity import (
    patch_similarity,
    patch_similarity_max_files,
    similarity_to_tests,
)
from coding_gym.rewards.swe_rl import FORMAT_ERROR, swe_rl_similarity
from coding_gym.rewards.terminal import exploration_depth, terminal_habits
from coding_gym.rewards.tool_calls import tool_call_validity
from coding_gym.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """A reward that has a name.

    Attributes:
        name: The name.
        score: Gives the value of a finished episode.
        lowest: The least value.
        highest: The greatest value.
        needs: Fields of the task, ``gold_patch`` or ``test_patch``, that must not be empty.
    """

    name: str
    score: Callable[[Sample], float]
    lowest: float = 0.0
    highest: float = 1.0
    needs: tuple[str, ...] = ()

    @property
    def span(self) -> float:
        """How far the values of two episodes may be apart."""
        return self.highest - self.lowest

    def value(self, sample: Sample) -> float:
        """Returns what an episode is worth; nothing above 0 where the tests were tampered with."""
        value = self.score(sample)
        return min(value, 0.0) if sample.grade.reason is GradeReason.TAMPERED else value


def get_reward(name: str) -> Reward:
    """Returns a reward.

    Raises:
        UnknownNameError: There is none of that name.
    """
    if not isinstance(name, str) or name not in _REWARDS:
        raise unknown_name("reward", name, _REWARDS)
    return _REWARDS[name]


def reward_names() -> tuple[str, ...]:
    """Returns the names of all rewards, sorted.

    >>> "file_match" in reward_names()
    True
    """
    return tuple(sorted(_REWARDS))


def _of_change(name: str, score: Callable[[str, str], float], lowest: float = 0.0) -> Reward:
    """A reward of the gold patch and the graded change, 0 where there is no change."""
    return Reward(
        name=name,
        score=lambda s: score(s.task.gold_patch, s.graded) if s.graded.strip() else 0.0,
        lowest=lowest,
        highest=max(0.0, lowest + 1.0),
        needs=("gold_patch",),
    )


def _of_reply(name: str, score: Callable[[str], float]) -> Reward:
    """A reward of what the policy said last."""
    return Reward(name=name, score=lambda s: score(s.last_reply))


def _swe_rl(sample: Sample) -> float:
    if sample.grade.reason is GradeReason.PATCH_NOT_APPLIED:
        return FORMAT_ERROR
    change = sample.graded
    return swe_rl_similarity(sample.task.gold_patch, change) if change.strip() else 0.0


def _test_similarity(sample: Sample) -> float:
    return similarity_to_tests(sample.task.test_patch, sample.patch)


def _curation(sample: Sample) -> float:
    if not sample.patch.strip():
        return 0.0
    return curation_score(sample.task.gold_patch, sample.task.test_patch, sample.patch)


def _efficiency(sample: Sample) -> float:
    return exploration_efficiency(gold_files(sample.task.gold_patch), sample.turns)


_GOLD, _TESTS = ("gold_patch",), ("gold_patch", "test_patch")

_ALL = (
    Reward(name="progress", score=lambda s: progress(s.grade)),
    Reward(name="fraction", score=lambda s: fraction(s.grade)),
    Reward(name="areno", score=lambda s: areno(s.grade, s.turns), lowest=-1.0),
    _of_change("patch_similarity", patch_similarity),
    _of_change("patch_similarity_max_files", patch_similarity_max_files),
    _of_change("calibrated_similarity", calibrated_similarity),
    _of_change("file_match", file_match),
    _of_change("exact_match", exact_match),
    _of_change("diff_size", diff_size, lowest=-1.0),
    Reward(name="swe_rl_similarity", score=_swe_rl, lowest=-1.0, needs=_GOLD),
    Reward(name="test_patch_similarity", score=_test_similarity, needs=("test_patch",)),
    Reward(name="curation_score", score=_curation, needs=_TESTS),
    Reward(
        name="search_replace_similarity",
        score=lambda s: search_replace_similarity(s.task.gold_patch, s.last_reply),
        needs=_GOLD,
    ),
    _of_reply("search_replace_format", search_replace_format),
    _of_reply("reasoning_format", reasoning_format),
    _of_reply("partial_reasoning_format", partial_reasoning_format),
    Reward(
        name="named_file",
        score=lambda s: categorical_correctness(gold_files(s.task.gold_patch), s.last_reply),
        needs=_GOLD,
    ),
    Reward(name="tool_call_validity", score=lambda s: tool_call_validity(s.turns, s.schemas)),
    Reward(name="terminal_habits", score=lambda s: terminal_habits(s.turns)),
    Reward(name="exploration_depth", score=lambda s: exploration_depth(s.turns)),
    Reward(name="exploration_efficiency", score=_efficiency, needs=_GOLD),
)
_REWARDS: Mapping[str, Reward] = MappingProxyType({reward.name: reward for reward in _ALL})


def problem(reward: Reward, task: Task) -> str:
    """Returns what keeps a reward from being computed for a task, or ""."""
    texts = {"gold_patch": task.gold_patch, "test_patch": task.test_patch}
    keys = {"gold_patch": "gold patch ('patch')", "test_patch": "hidden tests ('test_patch')"}
    for name in reward.needs:
        if not texts[name].strip():
            return f"it has no {keys[name]}"
    try:
        for change in Patch(task.gold_patch).files if "gold_patch" in reward.needs else ():
            list(changed_runs(change))
    except PatchError as error:
        return f"its {keys['gold_patch']} cannot be read: {error}"
    return ""
