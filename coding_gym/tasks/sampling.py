"""Which task an episode gets."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np

from coding_gym.arguments import check_arguments, unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.task import Task
from coding_gym.tasks.curriculum import AdaptiveSampler, DifficultySampler, check_recorded


class Sampler(Protocol):
    """Chooses the next task.

    All randomness comes from ``rng``, so a seeded environment meets the same tasks again; where the
    choice depends on results, it does if they are the same too.

    Attributes:
        follows_results: Whether what is recorded changes what comes next.
    """

    follows_results: bool

    def next(self, rng: np.random.Generator) -> Task:
        """Returns the task of the next episode."""
        ...

    def record(self, task_id: str, *, resolved: bool) -> None:
        """Takes note of how an episode of one of its tasks ended.

        Raises:
            UnknownTaskError: It has no such task.
        """
        ...

    def copy(self) -> Self:
        """Returns a sampler of the same tasks that goes on from here by itself."""
        ...

    def fresh(self) -> Self:
        """Returns a sampler of the same tasks at the beginning, with nothing recorded."""
        ...

    def share(self, other: "Sampler") -> None:
        """Takes note of results together with another sampler of its kind from now on."""
        ...


class UniformSampler:
    """Any task at any time, each as likely as the others."""

    follows_results = False

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tuple(tasks)

    def next(self, rng: np.random.Generator) -> Task:
        """Returns a task drawn with replacement."""
        return self._tasks[int(rng.integers(len(self._tasks)))]

    def record(self, task_id: str, *, resolved: bool) -> None:  # noqa: ARG002 - one signature for all
        """Takes no notice: results change nothing here."""
        check_recorded(task_id, self._tasks)

    def copy(self) -> Self:
        """Returns another sampler of the same tasks."""
        return type(self)(self._tasks)

    def fresh(self) -> Self:
        """Returns another sampler at the beginning."""
        return type(self)(self._tasks)

    def share(self, other: "Sampler") -> None:
        """Takes no notice: results change nothing here."""


class SequentialSampler:
    """Every task in its order, then again from the first."""

    follows_results = False

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tuple(tasks)
        self._at = 0

    def next(self, rng: np.random.Generator) -> Task:  # noqa: ARG002 - one signature for all
        """Returns the task after the last one."""
        task = self._tasks[self._at]
        self._at = (self._at + 1) % len(self._tasks)
        return task

    def record(self, task_id: str, *, resolved: bool) -> None:  # noqa: ARG002 - one signature for all
        """Takes no notice: results change nothing here."""
        check_recorded(task_id, self._tasks)

    def copy(self) -> Self:
        """Returns another sampler at the same task."""
        twin = self.fresh()
        twin._at = self._at
        return twin

    def fresh(self) -> Self:
        """Returns another sampler at the beginning."""
        return type(self)(self._tasks)

    def share(self, other: "Sampler") -> None:
        """Takes no notice: results change nothing here."""


class ShuffledSampler:
    """Every task once per epoch, in an order drawn anew for each epoch."""

    follows_results = False

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tuple(tasks)
        self._left: list[int] = []

    def next(self, rng: np.random.Generator) -> Task:
        """Returns a task that this epoch has not had yet."""
        if not self._left:
            self._left = [int(index) for index in rng.permutation(len(self._tasks))]
        return self._tasks[self._left.pop()]

    def record(self, task_id: str, *, resolved: bool) -> None:  # noqa: ARG002 - one signature for all
        """Takes no notice: results change nothing here."""
        check_recorded(task_id, self._tasks)

    def copy(self) -> Self:
        """Returns another sampler with the same tasks left in this epoch."""
        twin = self.fresh()
        twin._left = self._left.copy()
        return twin

    def fresh(self) -> Self:
        """Returns another sampler at the beginning."""
        return type(self)(self._tasks)

    def share(self, other: "Sampler") -> None:
        """Takes no notice: results change nothing here."""


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
    given = dict(sampler) if isinstance(sampler, Mapping) else {"name": sampler}
    if "name" not in given:
        raise InvalidArgumentError(
            f"a sampler needs 'name', one of {', '.join(sorted(_SAMPLERS))}, got {given!r}"
        )
    name = given.pop("name")
    if not isinstance(name, str) or name not in _SAMPLERS:
        raise unknown_name("sampler", name, _SAMPLERS)
    if not tasks:
        raise InvalidArgumentError("a sampler needs at least one task, got none")
    kind = _SAMPLERS[name]
    known = [p for p in inspect.signature(kind).parameters if p != "tasks"]
    check_arguments(f"sampler {name!r}", given, known)
    return kind(tasks, **given)
