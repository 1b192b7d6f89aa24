"""Which task an episode gets."""

from collections.abc import Callable, Sequence
from typing import Protocol, Self

import numpy as np

from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.task import Task


class Sampler(Protocol):
    """Chooses the next task.

    All randomness comes from ``rng``, so a seeded environment meets the same tasks again.
    """

    def next(self, rng: np.random.Generator) -> Task:
        """Returns the task of the next episode."""
        ...

    def copy(self) -> Self:
        """Returns a sampler of the same tasks that goes on from here by itself."""
        ...


class UniformSampler:
    """Any task at any time, each as likely as the others."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tuple(tasks)

    def next(self, rng: np.random.Generator) -> Task:
        """Returns a task drawn with replacement."""
        return self._tasks[int(rng.integers(len(self._tasks)))]

    def copy(self) -> Self:
        """Returns another sampler of the same tasks."""
        return type(self)(self._tasks)


class SequentialSampler:
    """Every task in its order, then again from the first."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tuple(tasks)
        self._at = 0

    def next(self, rng: np.random.Generator) -> Task:  # noqa: ARG002 - one signature for all
        """Returns the task after the last one."""
        task = self._tasks[self._at]
        self._at = (self._at + 1) % len(self._tasks)
        return task

    def copy(self) -> Self:
        """Returns another sampler at the same task."""
        twin = type(self)(self._tasks)
        twin._at = self._at
        return twin


class ShuffledSampler:
    """Every task once per epoch, in an order drawn anew for each epoch."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tuple(tasks)
        self._left: list[int] = []

    def next(self, rng: np.random.Generator) -> Task:
        """Returns a task that this epoch has not had yet."""
        if not self._left:
            self._left = [int(index) for index in rng.permutation(len(self._tasks))]
        return self._tasks[self._left.pop()]

    def copy(self) -> Self:
        """Returns another sampler with the same tasks left in this epoch."""
        twin = type(self)(self._tasks)
        twin._left = self._left.copy()
        return twin


_SAMPLERS: dict[str, Callable[[Sequence[Task]], Sampler]] = {
    "sequential": SequentialSampler,
    "shuffled": ShuffledSampler,
    "uniform": UniformSampler,
}


def get_sampler(name: str, tasks: Sequence[Task]) -> Sampler:
    """Returns a new sampler over ``tasks``: ``sequential``, ``shuffled`` or ``uniform``.

    Raises:
        UnknownNameError: There is no sampler of that name.
        InvalidArgumentError: There are no tasks.
    """
    if name not in _SAMPLERS:
        raise unknown_name("sampler", name, _SAMPLERS)
    if not tasks:
        raise InvalidArgumentError("a sampler needs at least one task, got none")
    return _SAMPLERS[name](tasks)
