"""Samplers that follow what the policy can do: from easy to hard, and where it still learns."""

import re
import threading
from collections import deque
from collections.abc import Sequence
from typing import Self

import numpy as np

from coding_gym.arguments import at_least_one, is_number
from coding_gym.errors import InvalidArgumentError, UnknownTaskError
from coding_gym.task import Task

# SWE-bench Verified's labels say how long a person would take.
_RANKS = {
    "trivial": 0.0,
    "easy": 1.0,
    "<15 min fix": 1.0,
    "medium": 2.0,
    "15 min - 1 hour": 2.0,
    "hard": 3.0,
    "1-4 hours": 3.0,
    ">4 hours": 4.0,
}
_UNKNOWN_RANK = 2.0
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_EPISODES_PER_TASK = 10


def difficulty_rank(label: str) -> float:
    """Returns where a difficulty stands, the easiest first; the middle where the label is unknown.

    A label that is a number is its own rank.
    """
    text = label.strip().lower()
    if text in _RANKS:
        return _RANKS[text]
    return float(text) if _NUMBER.fullmatch(text) else _UNKNOWN_RANK


def check_recorded(task_id: str, tasks: Sequence[Task]) -> None:
    """Makes sure that a result is of one of a sampler's tasks.

    Raises:
        UnknownTaskError: It is not.
    """
    if not any(task.task_id == task_id for task in tasks):
        raise UnknownTaskError(
            f"a result of task {task_id!r}, and the sampler has no such task; record those that "
            f"next gave, such as {tasks[0].task_id!r}"
        )


class DifficultySampler:
    """Begins with the easiest tasks and takes in harder ones, until all are drawn alike.

    Args:
        tasks: The tasks, in any order; their ``difficulty`` counts.
        start: Fraction of the tasks, the easiest, that the first episodes are drawn from.
        num_episodes: Number of draws after which every task is in; 0 for ten per task.

    Raises:
        InvalidArgumentError: An argument is out of range.
    """

    follows_results = False

    def __init__(
        self, tasks: Sequence[Task], *, start: float = 1 / 3, num_episodes: int = 0
    ) -> None:
        if not is_number(start) or not 0 < start <= 1:
            raise InvalidArgumentError(f"start must be above 0 and at most 1, got {start!r}")
        self._tasks = tuple(sorted(tasks, key=lambda task: difficulty_rank(task.difficulty)))
        self._start = float(start)
        self._num_episodes = (
            at_least_one("num_episodes", num_episodes)
            if num_episodes
            else _EPISODES_PER_TASK * len(self._tasks)
        )
        self._num_drawn = 0

    def next(self, rng: np.random.Generator) -> Task:
        """Returns one of the tasks that are in by now."""
        progress = min(1.0, self._num_drawn / self._num_episodes)
        share = self._start + (1 - self._start) * progress
        self._num_drawn += 1
        return self._tasks[int(rng.integers(max(1, round(share * len(self._tasks)))))]

    def record(self, task_id: str, *, resolved: bool) -> None:  # noqa: ARG002 - as others have it
        """Takes no notice: what counts is how many episodes there were."""
        check_recorded(task_id, self._tasks)

    def copy(self) -> Self:
        """Returns another sampler at the same point."""
        twin = self.fresh()
        twin._num_drawn = self._num_drawn
        return twin

    def fresh(self) -> Self:
        """Returns another sampler at the beginning."""
        return type(self)(self._tasks, start=self._start, num_episodes=self._num_episodes)

    def share(self, other: object) -> None:
        """Takes no notice: results change nothing here."""


class SuccessRates:
    """How the last episodes of each task ended; safe to share among threads.

    Args:
        window: How many episodes of each task are remembered.
    """

    def __init__(self, window: int = 16) -> None:
        self._window = at_least_one("window", window)
        self._ends: dict[str, deque[bool]] = {}
        self._lock = threading.Lock()

    def record(self, task_id: str, *, resolved: bool) -> None:
        """Takes note of the end of an episode."""
        with self._lock:
            self._ends.setdefault(task_id, deque(maxlen=self._window)).append(bool(resolved))

    def counts(self, task_id: str) -> tuple[int, int]:
        """Returns how many of the remembered episodes of a task were resolved, and how many are."""
        with self._lock:
            ends = self._ends.get(task_id, ())
            return sum(ends), len(ends)

    def copy(self) -> "SuccessRates":
        """Returns another record of the same episodes."""
        twin = SuccessRates(self._window)
        with self._lock:
            twin._ends = {task_id: ends.copy() for task_id, ends in self._ends.items()}
        return twin

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._ends.clear()


class AdaptiveSampler:
    """Draws most often the tasks that are sometimes solved, as only those teach a policy anything.

    A group of episodes that all end alike has no advantage to learn from: GRPO subtracts their
    mean. The weight of a task is p (1 - p), the variance of its result, with
    p = (solved + 1) / (tries + 2) over its last episodes; a task that was never tried has the
    greatest. One that was always or never solved in at least ``min_tries`` episodes is dropped, but
    for a small share of the draws by which it is found out whether that still holds.

    Args:
        tasks: The tasks.
        window: How many episodes of each task are remembered.
        min_tries: From how many on a task may be dropped; at most ``window``.
        revisit: Share of the draws that goes to dropped tasks, 0 to 1.

    Attributes:
        rates: What was recorded.

    Raises:
        InvalidArgumentError: An argument is out of range.
    """

    follows_results = True

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        window: int = 16,
        min_tries: int = 8,
        revisit: float = 0.05,
    ) -> None:
        self._tasks = tuple(tasks)
        self.rates = SuccessRates(window)
        if at_least_one("min_tries", min_tries) > window:
            raise InvalidArgumentError(
                f"min_tries must be at most window, {window}, got {min_tries}"
            )
        if not is_number(revisit) or not 0 <= revisit <= 1:
            raise InvalidArgumentError(f"revisit must be from 0 to 1, got {revisit!r}")
        self._window, self._min_tries, self._revisit = window, min_tries, float(revisit)

    def next(self, rng: np.random.Generator) -> Task:
        """Returns a task by the record as it is now."""
        counts = [self.rates.counts(task.task_id) for task in self._tasks]
        solved, tries = (np.array(column, dtype=np.float64) for column in zip(*counts, strict=True))
        is_dropped = (tries >= self._min_tries) & ((solved == 0) | (solved == tries))
        rate = (solved + 1) / (tries + 2)
        weights = np.where(is_dropped, 0.0, rate * (1 - rate))
        chance = rng.random()  # drawn every time, so that the sequence depends on the record alone
        if is_dropped.all() or (is_dropped.any() and chance < self._revisit):
            weights = is_dropped.astype(np.float64)
        return self._tasks[int(rng.choice(len(self._tasks), p=weights / weights.sum()))]

    def record(self, task_id: str, *, resolved: bool) -> None:
        """Takes note of the end of an episode of one of its tasks."""
        check_recorded(task_id, self._tasks)
        self.rates.record(task_id, resolved=resolved)

    def dropped(self) -> tuple[str, ...]:
        """Returns the ids of the tasks that are hardly drawn any more."""
        found = []
        for task in self._tasks:
            solved, tries = self.rates.counts(task.task_id)
            if tries >= self._min_tries and solved in (0, tries):
                found.append(task.task_id)
        return tuple(found)

    def copy(self) -> Self:
        """Returns another sampler with a record of its own, equal to this one's."""
        return self._twin(self.rates.copy())

    def fresh(self) -> Self:
        """Returns a sampler that has forgotten everything, as have those that share the record."""
        self.rates.clear()
        return self._twin(self.rates)

    def share(self, other: object) -> None:
        """Keeps one record with another of these, from now on the other's."""
        if isinstance(other, AdaptiveSampler):
            self.rates = other.rates

    def _twin(self, rates: SuccessRates) -> Self:
        twin = type(self)(
            self._tasks, window=self._window, min_tries=self._min_tries, revisit=self._revisit
        )
        twin.rates = rates
        return twin
