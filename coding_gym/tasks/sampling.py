"""Samplers, which draw the task of each episode uniformly, in order, by difficulty or success."""

import inspect
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar

import numpy as np

from coding_gym.arguments import at_least_one, check_arguments, is_number, unknown_name
from coding_gym.errors import InvalidArgumentError, UnknownTaskError
from coding_gym.task import Task

# Labels with times come from SWE-bench Verified: estimates of the time of a repair.
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
    """Returns the rank of a difficulty label; easier labels have lower ranks.

    The rank of a numeric label is the number; an unknown label has the rank of "medium".
    """
    text = label.strip().lower()
    if text in _RANKS:
        return _RANKS[text]
    return float(text) if _NUMBER.fullmatch(text) else _UNKNOWN_RANK


class Sampler(ABC):
    """Draws the task of each episode.

    All randomness comes from ``rng``: equal seeds and equal recorded results give equal draws.

    Args:
        tasks: The tasks.

    Attributes:
        state_names: Names of the attributes that `state` returns.
    """

    state_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tuple(tasks)
        self.restart()

    @abstractmethod
    def next(self, rng: np.random.Generator) -> Task:
        """Returns the task of the next episode."""

    def record(self, task_id: str, *, resolved: bool) -> None:  # noqa: ARG002 - some samplers use it
        """Records the result of an episode; most samplers ignore it.

        Raises:
            UnknownTaskError: The sampler has no such task.
        """
        if not any(task.task_id == task_id for task in self._tasks):
            raise UnknownTaskError(
                "task_id must be the id of a task of the sampler, such as "
                f"{self._tasks[0].task_id!r}, got {task_id!r}"
            )

    def restart(self) -> None:  # noqa: B027 - most samplers have no state
        """Returns to the start of the sequence and clears all recorded results."""

    def state(self) -> dict[str, Any]:
        """Returns the position in the sequence and the recorded results, as JSON values."""
        return {name: copy(getattr(self, name)) for name in self.state_names}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continues from the `state` of a sampler of the same type and tasks; ends sharing."""
        vars(self).update({name: copy(state[name]) for name in self.state_names})

    def share(self, other: "Sampler") -> None:  # noqa: B027 - most samplers record nothing
        """Shares the recorded results of another sampler of the same type."""


class UniformSampler(Sampler):
    """Draws uniformly, with replacement."""

    def next(self, rng: np.random.Generator) -> Task:
        """Returns a random task."""
        return self._tasks[int(rng.integers(len(self._tasks)))]


class SequentialSampler(Sampler):
    """Draws the tasks in their order, and starts again after the last task."""

    state_names = ("_at",)

    def restart(self) -> None:
        """Returns to the first task."""
        self._at = 0

    def next(self, rng: np.random.Generator) -> Task:  # noqa: ARG002 - the interface
        """Returns the next task."""
        task = self._tasks[self._at]
        self._at = (self._at + 1) % len(self._tasks)
        return task


class ShuffledSampler(Sampler):
    """Draws every task once per epoch, in a new random order for each epoch."""

    state_names = ("_left",)

    def restart(self) -> None:
        """Starts a new epoch."""
        self._left: list[int] = []

    def next(self, rng: np.random.Generator) -> Task:
        """Returns a task that was not drawn in this epoch."""
        remaining_indices = self._left or rng.permutation(len(self._tasks)).tolist()
        self._left = remaining_indices[:-1]
        return self._tasks[remaining_indices[-1]]


class DifficultySampler(Sampler):
    """Draws from the easiest tasks first, and adds harder tasks until all are included.

    Args:
        tasks: The tasks, in any order; `difficulty_rank` sorts them.
        start: Fraction of the tasks, the easiest, that is included at the start.
        num_episodes: Number of draws until all tasks are included; 0 for ten per task.

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
        default = _EPISODES_PER_TASK * len(self._tasks)
        self._num_episodes = at_least_one("num_episodes", num_episodes or default)

    def restart(self) -> None:
        """Returns to the easiest tasks."""
        self._num_drawn = 0

    def next(self, rng: np.random.Generator) -> Task:
        """Returns a random task, chosen from the included tasks."""
        progress = min(1.0, self._num_drawn / self._num_episodes)
        share = self._start + (1 - self._start) * progress
        self._num_drawn += 1
        return self._tasks[int(rng.integers(max(1, round(share * len(self._tasks)))))]


class AdaptiveSampler(Sampler):
    """Draws mostly tasks that are sometimes solved; threads can share a sampler.

    A group of episodes with equal results teaches nothing, as GRPO subtracts the mean reward. The
    weight of a task is p (1 - p), the variance of its result. p = (solved + 1) / (tries + 2), from
    the last episodes, estimates the probability of a solution; a task without episodes has the
    maximum weight. A task with at least ``min_tries`` recorded episodes, all solved or none solved,
    is dropped; a share ``revisit`` of the draws still picks dropped tasks.

    Args:
        tasks: The tasks.
        window: Number of recorded episodes per task; older episodes are discarded.
        min_tries: Number of episodes before a task can be dropped; at most ``window``.
        revisit: Share of the draws that pick dropped tasks, 0 to 1.

    Raises:
        InvalidArgumentError: An argument is out of range.
    """

    state_names = ("_results",)

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        window: int = 16,
        min_tries: int = 8,
        revisit: float = 0.05,
    ) -> None:
        self._window = at_least_one("window", window)
        self._results: dict[str, list[bool]] = {}  # lists are replaced, never mutated
        self._lock = threading.Lock()
        super().__init__(tasks)
        if at_least_one("min_tries", min_tries) > window:
            raise InvalidArgumentError(
                f"min_tries must be at most window={window}, got {min_tries}"
            )
        if not is_number(revisit) or not 0 <= revisit <= 1:
            raise InvalidArgumentError(f"revisit must be from 0 to 1, got {revisit!r}")
        self._min_tries, self._revisit = min_tries, float(revisit)

    def next(self, rng: np.random.Generator) -> Task:
        """Returns a random task; recorded results determine the probabilities."""
        results = [self._results.get(task.task_id, ()) for task in self._tasks]
        num_solved, num_tries = np.array([(sum(r), len(r)) for r in results], dtype=np.float64).T
        has_equal_results = (num_solved == 0) | (num_solved == num_tries)
        is_dropped = (num_tries >= self._min_tries) & has_equal_results
        rate = (num_solved + 1) / (num_tries + 2)
        weights = np.where(is_dropped, 0.0, rate * (1 - rate))
        draw = rng.random()  # always drawn, so that each call advances `rng` equally
        if is_dropped.all() or (is_dropped.any() and draw < self._revisit):
            weights = is_dropped.astype(np.float64)
        return self._tasks[int(rng.choice(len(self._tasks), p=weights / weights.sum()))]

    def record(self, task_id: str, *, resolved: bool) -> None:
        """Records whether an episode of a task was resolved."""
        super().record(task_id, resolved=resolved)
        with self._lock:
            results = [*self._results.get(task_id, ()), bool(resolved)]
            self._results[task_id] = results[-self._window :]

    def restart(self) -> None:
        """Clears the recorded results of this sampler and of samplers that share them."""
        self._results.clear()

    def share(self, other: Sampler) -> None:
        """Shares the recorded results of another adaptive sampler."""
        if isinstance(other, AdaptiveSampler):
            self._results, self._lock = other._results, other._lock


_SAMPLERS: dict[str, Callable[..., Sampler]] = {
    "adaptive": AdaptiveSampler,
    "difficulty": DifficultySampler,
    "sequential": SequentialSampler,
    "shuffled": ShuffledSampler,
    "uniform": UniformSampler,
}


def get_sampler(sampler: str | Mapping[str, Any], tasks: Sequence[Task]) -> Sampler:
    """Returns a new sampler over ``tasks``.

    Args:
        sampler: ``uniform``, ``sequential``, ``shuffled``, ``difficulty`` (easy tasks first) or
            ``adaptive`` (mostly tasks that are sometimes solved); or an object with ``name`` and
            the arguments of the sampler: ``{"name": "adaptive", "window": 32}``.
        tasks: The tasks.

    Raises:
        UnknownNameError: No sampler has this name.
        InvalidArgumentError: There are no tasks, ``name`` is missing, or an argument is wrong.
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
    names = [p for p in inspect.signature(kind).parameters if p != "tasks"]
    check_arguments(f"sampler {name!r}", arguments, names)
    return kind(tasks, **arguments)
