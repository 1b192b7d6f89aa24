"""Which calls of an episode run at once: snapshots may, an action runs alone."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from coding_gym.errors import EpisodeError


class Occupancy:
    """Counts the calls that are under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._num_calls = 0
        self._is_alone = False

    @contextmanager
    def hold(self, what: str, *, alone: bool) -> Iterator[None]:
        """Lets a call in, until it is over.

        Args:
            what: Its name.
            alone: Whether no other may run beside it.

        Raises:
            EpisodeError: Another is under way that may not run beside this one.
        """
        with self._lock:
            if self._is_alone or (alone and self._num_calls):
                raise EpisodeError(
                    f"{what} was called while {'an action' if self._is_alone else 'a snapshot'} of "
                    "the episode is under way in another thread; wait for it"
                )
            self._num_calls += 1
            self._is_alone = alone
        try:
            yield
        finally:
            with self._lock:
                self._num_calls -= 1
                self._is_alone = False


class _Occupied(Protocol):
    @property
    def occupancy(self) -> Occupancy: ...


S = TypeVar("S", bound=_Occupied)
P = ParamSpec("P")
R = TypeVar("R")


def alone(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Returns a method that runs alone, or raises EpisodeError."""
    return _held(method, alone=True)


def shared(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Returns a method that runs beside its like only, or raises EpisodeError."""
    return _held(method, alone=False)


def _held(method: Callable[Concatenate[S, P], R], *, alone: bool) -> Callable[Concatenate[S, P], R]:
    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.occupancy.hold(method.__name__, alone=alone):
            return method(self, *args, **kwargs)

    return call
