"""Many episodes at once: ordinary envs on threads of one process."""

import atexit
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import ExitStack
from functools import partial
from typing import Any, cast

import numpy as np
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector.utils import iterate
from numpy.typing import NDArray

from coding_gym.arguments import at_least_one, is_integer
from coding_gym.envs.snapshot import EnvSnapshot, snapshot
from coding_gym.errors import EpisodeError, InvalidArgumentError
from coding_gym.vector.batching import Batch, merge_infos, stack, to_batch
from coding_gym.vector.slots import Slot, Transition
from coding_gym.vector.sub_envs import Env, WrapperEntry, make_envs

Seed = int | Sequence[int | None] | NDArray[np.integer[Any]] | None


class CodingRepairVectorEnv(SyncVectorEnv):
    """N ``CodingRepair-v0`` envs, each with its wrappers, on N threads of one process.

    `reset` and `step` return the same values as Gymnasium's ``SyncVectorEnv`` with the same envs,
    including infos, but run the envs in parallel. Threads are sufficient, because episodes mostly
    wait for their sandboxes. After the end of an episode the next action is ignored and starts a
    new episode (``AutoresetMode.NEXT_STEP``).

    `send` and `recv` play actions in some of the envs, as in EnvPool
    (https://github.com/sail-sg/envpool); `recv` does not wait for envs that are still being graded.

    An infrastructure failure truncates the episode of its env only. A mistake of the caller raises
    an exception, as in a single env. `step` and `reset` then discard the results of the other envs,
    whose actions were played; afterwards no action is pending.

    Args:
        num_envs: N, the number of envs.
        env_wrappers: The wrappers of each env, the innermost first. A wrapper is a callable that
            takes an env and returns an env, or ``{"name": "TokenBudget", "kwargs": {...}}``; the
            name is a class of `coding_gym.wrappers` or ``"module:Class"``.
        **env_kwargs: Arguments of `CodingRepairEnv`.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument cannot be used.
    """

    _snapshot_of: Callable[[Any], EnvSnapshot] = staticmethod(snapshot)

    def __init__(
        self, num_envs: int, *, env_wrappers: Sequence[WrapperEntry] = (), **env_kwargs: Any
    ) -> None:
        self.closed = True  # Gymnasium's flag; nothing is open until the end of this method
        envs = self._make_envs(at_least_one("num_envs", num_envs), env_wrappers, env_kwargs)
        # Gymnasium takes functions that create envs; each call here returns the next env.
        super().__init__([partial(next, iter(envs))] * num_envs)
        self._slots = [Slot(index, env) for index, env in enumerate(self.envs)]
        self._finalizer = weakref.finalize(self, _stop, self._slots)
        self._finalizer.atexit = False
        # Registered after the import of the sandbox package by `make_envs`: functions that are
        # registered later run earlier, and threads must stop before the modules that they use.
        atexit.register(self._finalizer)
        self.closed = False

    def reset(
        self, *, seed: Seed = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts new episodes in all envs, after the end of pending actions.

        Args:
            seed: The seed of the first env, plus 1 for each further env; or a list with a seed for
                each env. With None each env continues its sequence of tasks.
            options: Options of a single env, such as ``snapshot``, which are used for each env;
                ``reset_mask``, a bool array of shape (N,), selects the envs to reset.

        Returns:
            The batch of the N observations, and the merged infos.

        Raises:
            InvalidArgumentError: An argument cannot be used.
            UnknownTaskError, InvalidTaskError: As for a single env.
            EpisodeError: With ``reset_mask``: an action is pending, or an env was never reset.
        """
        seeds = self._seeds(seed)
        indices, env_options = self._read_mask(options)
        self._check_open()
        if len(indices) < self.num_envs:
            _check_idle("reset of some envs", self._slots)
            _check_started(self._slots)
        self._drop_all()
        for index in indices:
            self._slots[index].begin_reset(seeds[index], env_options)
        transitions = self._take_all()
        infos = [(index, t.info) for index, t in zip(indices, transitions, strict=True)]
        observations = [transition.observation for transition in self.latest]
        return stack(self.single_observation_space, observations), merge_infos(infos, self.num_envs)

    def step(self, actions: Any) -> Batch:
        """Plays one action in each env.

        Args:
            actions: A batch of N actions, such as a list of texts.

        Returns:
            The batch of the N observations; rewards, float64 (N,); terminations and truncations,
            bool (N,); the merged infos.

        Raises:
            InvalidArgumentError: ``actions`` is not a batch of N actions.
            EpisodeError: An env was never reset, or an action is pending: call `recv` first.
        """
        self.send(actions)
        return to_batch(self.single_observation_space, self._take_all())

    def send(self, actions: Any, env_ids: Sequence[int] | NDArray[Any] | None = None) -> None:
        """Starts one action in each of some envs, and returns immediately.

        Args:
            actions: A batch of M actions in the form of `step`.
            env_ids: The M envs, each at most once, without a pending action; all by default.

        Raises:
            InvalidArgumentError, EpisodeError: As for `step`; no action has started.
        """
        self._check_open()
        slots = self._slots if env_ids is None else self._slots_of(env_ids)
        # Gymnasium would treat the characters of a string as a batch.
        batch = [] if isinstance(actions, str) else list(iterate(self.action_space, actions))
        if len(batch) != len(slots):
            raise InvalidArgumentError(
                f"actions must be a batch of {len(slots)}, one for each env, got {actions!r:.80}"
            )
        _check_idle("an action", slots)
        _check_started(slots)
        for slot, action in zip(slots, batch, strict=True):
            slot.begin_step(action)

    def recv(self, min_envs: int = 1) -> Batch:
        """Waits until some envs are ready, and returns the results of all ready envs.

        Args:
            min_envs: Minimum number of envs to wait for, at most the number of pending actions.

        Returns:
            The values of `step` for M envs, min_envs ≤ M ≤ N, in the order of their numbers. Every
            array has length M, even in the infos. ``infos["env_id"]``, int64 (M,), has the numbers
            of the envs.

        Raises:
            InvalidArgumentError: Fewer than ``min_envs`` actions are pending.
            Exception: The exception of an env, as in `step`. This env then accepts another
                action; the next `recv` returns the results of the other envs.
        """
        self._check_open()
        slots = self._wait(at_least_one("min_envs", min_envs))
        transitions = [
            transition._replace(info=transition.info | {"env_id": slot.index})
            for slot, transition in zip(slots, _take(slots), strict=True)
        ]
        return to_batch(self.single_observation_space, transitions)

    @property
    def latest(self) -> list[Transition]:
        """The last result of each env that was reset, in the form of a single env."""
        return [slot.latest for slot in self._slots if slot.latest is not None]

    def snapshot(self, index: int) -> EnvSnapshot:
        """Returns a snapshot of one env with its wrappers; see `coding_gym.snapshot`.

        Raises:
            EpisodeError: The env has no running episode, or an action is pending.
        """
        self._check_open()
        (slot,) = self._slots_of([index])
        _check_idle("snapshot", [slot])
        return self._snapshot_of(slot.env)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Returns the results of a method, or the values of an attribute, of the N envs.

        The outermost wrapper that has the attribute is used, else the env.

        Raises:
            EpisodeError: An action is pending.
            AttributeError: The env and its wrappers have no such attribute.
        """
        self._check_open()
        _check_idle("call", self._slots)
        return super().call(name, *args, **kwargs)

    def close_extras(self, **_kwargs: Any) -> None:
        """Ends all episodes and threads; kills commands and waits for running grades."""
        with ExitStack() as closing:  # last in, first out; runs all, even if one raises
            for env in self.envs:
                closing.callback(env.close)
            for slot in self._slots:
                closing.callback(slot.join)
            closing.callback(atexit.unregister, self._finalizer)
            closing.callback(self._finalizer)

    def __del__(self) -> None:
        """Does nothing; Gymnasium's method would wait for threads during garbage collection."""

    def _make_envs(
        self, num_envs: int, wrappers: Sequence[WrapperEntry], env_kwargs: Mapping[str, Any]
    ) -> list[Env]:
        return make_envs(num_envs, wrappers, env_kwargs)

    def _check_open(self) -> None:
        if not (self._finalizer.alive and self._slots[0].is_alive):
            raise EpisodeError(
                "this vector env is closed or belongs to another process; create a new one"
            )

    def _seeds(self, seed: Seed) -> list[int | None]:
        if seed is None or is_integer(seed):
            return [None if seed is None else int(seed) + n for n in range(self.num_envs)]
        seeds = list(cast("Sequence[Any]", seed)) if np.iterable(seed) else []
        if len(seeds) != self.num_envs or not all(s is None or is_integer(s) for s in seeds):
            raise InvalidArgumentError(
                f"seed must be None, an integer, or a list of {self.num_envs} seeds, got {seed!r}"
            )
        return [None if s is None else int(s) for s in seeds]

    def _slots_of(self, env_ids: Sequence[int] | NDArray[Any]) -> list[Slot]:
        """Returns the slots with these numbers; raises InvalidArgumentError for invalid numbers."""
        ids = list(env_ids) if np.iterable(env_ids) else [None]
        is_valid = all(is_integer(i) and 0 <= i < self.num_envs for i in ids)
        if not is_valid or len(set(ids)) < len(ids):
            raise InvalidArgumentError(
                f"env_ids must be different numbers from 0 to {self.num_envs - 1}, got {env_ids!r}"
            )
        return [self._slots[int(index)] for index in ids]

    def _read_mask(self, options: dict[str, Any] | None) -> tuple[list[int], dict[str, Any] | None]:
        """Returns the indices of the envs to reset, and their options without ``reset_mask``."""
        if not isinstance(options, dict) or "reset_mask" not in options:
            return list(range(self.num_envs)), options  # each env checks its options
        mask = options["reset_mask"]
        is_mask = isinstance(mask, np.ndarray) and mask.dtype == np.bool_
        if not is_mask or mask.shape != (self.num_envs,) or not mask.any():
            raise InvalidArgumentError(
                f"reset_mask must be a bool array of shape ({self.num_envs},) with at least one "
                f"True, got {mask!r}"
            )
        env_options = {name: value for name, value in options.items() if name != "reset_mask"}
        return np.flatnonzero(mask).tolist(), env_options

    def _wait(self, num: int) -> list[Slot]:
        """Waits until ``num`` slots are done, and returns all done slots; see `recv`."""
        futures = [slot.pending for slot in self._slots if slot.pending is not None]
        if num > len(futures):
            raise InvalidArgumentError(
                f"min_envs must be at most {len(futures)}, the number of pending actions, "
                f"got {num}; call send first"
            )
        if num == len(futures):
            wait(futures)
        while sum(future.done() for future in futures) < num:
            wait([future for future in futures if not future.done()], return_when=FIRST_COMPLETED)
        self._check_open()  # another thread can close the vector env
        return [slot for slot in self._slots if slot.pending is not None and slot.pending.done()]

    def _take_all(self) -> list[Transition]:
        """Waits for all busy slots and returns their results; an exception discards all results."""
        try:
            return _take(self._wait(sum(slot.pending is not None for slot in self._slots)))
        except Exception:  # exceptions of envs are raised again; no result is pending afterwards
            self._drop_all()
            raise

    def _drop_all(self) -> None:
        for slot in self._slots:
            slot.drop()


def _check_idle(name: str, slots: Sequence[Slot]) -> None:
    """Raises EpisodeError if an action is pending in one of the slots."""
    pending_ids = [slot.index for slot in slots if slot.pending is not None]
    if pending_ids:
        raise EpisodeError(
            f"{name} needs idle envs, got pending envs {pending_ids}; call recv or reset first"
        )


def _check_started(slots: Sequence[Slot]) -> None:
    """Raises EpisodeError if one of the slots was never reset."""
    if any(slot.latest is None for slot in slots):
        raise EpisodeError("there are no episodes yet; call reset first")


def _take(slots: Sequence[Slot]) -> list[Transition]:
    """Returns the results of done slots, or raises an env's exception; the rest stays pending."""
    for slot in slots:
        if slot.pending is not None and slot.pending.exception() is not None:
            slot.take()  # raises the exception of the env
    return [slot.take() for slot in slots]


def _stop(slots: Sequence[Slot]) -> None:
    with ExitStack() as stopping:  # stops all, even if one raises
        for slot in slots:
            stopping.callback(slot.stop)
