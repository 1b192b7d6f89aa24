"""Which task an episode gets: any, each in turn, from easy to hard, or where the policy learns."""

import inspect
import re
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from coding_gym.arguments import at_least_one, check_arguments, is_number, unknown_name
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

    The rank of a label that is a number is that number.
    """
    text = label.strip().lower()
    if text in _RANKS:
        return _RANKS[text]
    return float(text) if _NUMBER.fullmatch(text) else _UNKNOWN_RANK


class Sampler(ABC):
    """Chooses the next task.

    All randomness comes from ``rng``, so a seeded environment meets the same tasks again; where the
    choice depends on results, it does if they are the same too.

    Args:
        tasks: The tasks.

    Attributes:
        follows_results: Whether what is recorded changes what comes next.
        state_names: The attributes that tell how far it is.
    """

    follows_results = False
    state_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tuple(tasks)
        self.restart()

    @abstractmethod
    def next(self, rng: np.random.Generator) -> Task:
        """Returns the task of the next episode."""

    def record(self, task_id: str, *, resolved: bool) -> None:  # noqa: ARG002 - of some samplers
        """Takes note of how an episode of one of its tasks ended, where that changes anything.

        Raises:
            UnknownTaskError: It has no such task.
        """
        if not any(task.task_id == task_id for task in self._tasks):
            raise UnknownTaskError(
                f"a result of task {task_id!r}, and the sampler has no such task; record those "
                f"that next gave, such as {self._tasks[0].task_id!r}"
            )

    def restart(self) -> None:  # noqa: B027 - most have nothing to forget
        """Goes back to the beginning, and forgets what was recorded."""

    def copy(self) -> Self:
        """Returns a sampler of the same tasks that goes on from here by itself."""
        return copy(self)

    def state(self) -> dict[str, Any]:
        """Returns its place in the sequence and what was recorded, as JSON values."""
        return {name: value for name, value in vars(self).items() if name in self.state_names}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continues from the `state` of a sampler of its kind and tasks."""
        vars(self).update({name: state[name] for name in self.state_names})

    def share(self, other: "Sampler") -> None:  # noqa: B027 - most take note of none
        """Takes note of results together with another sampler of its kind from now on."""


class UniformSampler(Sampler):
    """Any task at any time, each as likely as the others."""

    def next(self, rng: np.random.Generator) -> Task:
        """Returns a task drawn with replacement."""
        return self._tasks[int(rng.integers(len(self._tasks)))]


class SequentialSampler(Sampler):
    """Every task in its order, then again from the first."""

    state_names = ("_at",)

    def restart(self) -> None:
        """Goes back to the first task."""
        self._at = 0

    def next(self, rng: np.random.Generator) -> Task:  # noqa: ARG002 - as others have it
        """Returns the task after the last one."""
        task = self._tasks[self._at]
        self._at = (self._at + 1) % len(self._tasks)
        return task


class ShuffledSampler(Sampler):
    """Every task once per epoch, in an order drawn anew for each epoch."""

    state_names = ("_left",)

    def restart(self) -> None:
        """Begins a new epoch."""
        self._left: tuple[int, ...] = ()

    def next(self, rng: np.random.Generator) -> Task:
        """Returns a task that this epoch has not had yet."""
        left = self._left or tuple(map(int, rng.permutation(len(self._tasks))))
        self._left = left[:-1]
        return self._tasks[left[-1]]


class DifficultySampler(Sampler):
    """Begins with the easiest tasks and takes in harder ones, until all are drawn alike.

    Args:
        tasks: The tasks, in any order; their ``difficulty`` counts.
        start: Fraction of the tasks, the easiest, that the first episodes are drawn from.
        num_episodes: Number of draws after which every task is in; 0 for ten per task.

    Raises:
        InvalidArgumentError: An argument is out of range.
    """

    state_names = ("_num_drawn",)

    def __init__(
        self, tasks: Sequence[Task], *, start: float = 1 / 3, num_episodes: int = 0
    ) -> None:
        if not is_number(start) or not 0 < start <= 1:
            raise InvalidArgumentError(f"start must be above 0 and at most 1, got {start!r}")
        super().__init__(sorted(tasks, key=lambda task: difficulty_rank(task.difficulty)))
        self._start = float(start)
        self._num_episodes = (
            at_least_one("num_episodes", num_episodes)
            if num_episodes
            else _EPISODES_PER_TASK * len(self._tasks)
        )

    def restart(self) -> None:
        """Goes back to the easiest tasks."""
        self._num_drawn = 0

    def next(self, rng: np.random.Generator) -> Task:
        """Returns one of the tasks that are in by now."""
        progress = min(1.0, self._num_drawn / self._num_episodes)
        share = self._start + (1 - self._start) * progress
        self._num_drawn += 1
        return self._tasks[int(rng.integers(max(1, round(share * len(self._tasks)))))]


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
        copied = SuccessRates(self._window)
        copied.replace(self.ends())
        return copied

    def ends(self) -> dict[str, list[bool]]:
        """Returns the remembered ends of each task, the oldest first."""
        with self._lock:
            return {task_id: list(ends) for task_id, ends in self._ends.items()}

    def replace(self, ends: Mapping[str, Sequence[bool]]) -> None:
        """Remembers these ends instead."""
        with self._lock:
            self._ends = {task_id: deque(one, self._window) for task_id, one in ends.items()}

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._ends.clear()


class AdaptiveSampler(Sampler):
    """Draws most often the tasks that are sometimes solved, as only those teach a policy anything.

    A group of episodes that all end alike has no advantage to learn from: GRPO subtracts their
    mean. The weight of a task is p (1 - p), the variance of its result, with
    p = (solved + 1) / (tries + 2) over its last episodes; a task that was never tried has the
    greatest. One that was always or never solved in at least ``min_tries`` episodes is dropped, but
    for a small share of the draws, which checks whether that still holds.

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
        self.rates = SuccessRates(window)
        super().__init__(tasks)
        if at_least_one("min_tries", min_tries) > window:
            raise InvalidArgumentError(
                f"min_tries must be at most window, {window}, got {min_tries}"
            )
        if not is_number(revisit) or not 0 <= revisit <= 1:
            raise InvalidArgumentError(f"revisit must be from 0 to 1, got {revisit!r}")
        self._min_tries, self._revisit = min_tries, float(revisit)

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
        super().record(task_id, resolved=resolved)
        self.rates.record(task_id, resolved=resolved)

    def dropped(self) -> tuple[str, ...]:
        """Returns the ids of the tasks that are hardly drawn any more."""
        found = []
        for task in self._tasks:
            solved, tries = self.rates.counts(task.task_id)
            if tries >= self._min_tries and solved in (0, tries):
                found.append(task.task_id)
        return tuple(found)

    def restart(self) -> None:
        """Forgets everything, as do those that share the record."""
        self.rates.clear()

    def copy(self) -> Self:
        """Returns another sampler with a copy of the record."""
        copied = super().copy()
        copied.rates = self.rates.copy()
        return copied

    def state(self) -> dict[str, Any]:
        """Returns the recorded ends of each task."""
        return {"ends": self.rates.ends()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Remembers the ends of another sampler's `state` instead of its own."""
        self.rates.replace(state["ends"])

    def share(self, other: Sampler) -> None:
        """Keeps one record with another of these, from now on the other's."""
        if isinstance(other, AdaptiveSampler):
            self.rates = other.rates


_SAMPLERS: dict[str, Callable[..., Sampler]] = {
    "adaptive": AdaptiveSampler,
    "difficulty": DifficultySampler,
    "sequential": SequentialSampler,
    "shuffled": ShuffledSampler,
    "uniform": UniformSampler,
}
SAMPLER_NAMES = tuple(_SAMPLERS)


def get_sampler(sampler: str | Mapping[str, Any], tasks: Sequence[Task]) -> Sampler:
    """Returns a new sampler over ``tasks``.

    Args:
        sampler: ``uniform``, ``sequential``, ``shuffled``, ``difficulty`` (easy ones first) or
            ``adaptive`` (most often those that are sometimes solved); or an object with that as
            ``name`` and the sampler's own arguments: ``{"name": "adaptive", "window": 32}``.
        tasks: What it chooses from.

    Raises:
        UnknownNameError: There is no sampler of that name.
        InvalidArgumentError: There are no tasks, or ``name`` is missing, or an argument cannot be
            used.
    """
    arguments = dict(sampler) if isinstance(sampler, Mapping) else {"name": sampler}
    if "name" not in arguments:
        raise InvalidArgumentError(
            f"a sampler needs 'name', one of {', '.join(sorted(_SAMPLERS))}, got {arguments!r}"
        )
    name = arguments.pop("name")
    if not isinstance(name, str) or name not in _SAMPLERS:
        raise unknown_name("sampler", name, _SAMPLERS)
    if not tasks:
        raise InvalidArgumentError("a sampler needs at least one task, got none")
    kind = _SAMPLERS[name]
    known = [p for p in inspect.signature(kind).parameters if p != "tasks"]
    check_arguments(f"sampler {name!r}", arguments, known)
    return kind(tasks, **arguments)
