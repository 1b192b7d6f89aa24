"""The envs of a vector env together: who is busy, who is done, and who begins what."""

from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from coding_gym.arguments import is_integer
from coding_gym.envs.snapshot import EnvSnapshot, snapshot
from coding_gym.errors import EpisodeError, InvalidArgumentError
from coding_gym.vector.slot import Slot, Transition
from coding_gym.vector.thread_pool import ThreadPool

if TYPE_CHECKING:
    from concurrent.futures import Future


class Slots:
    """The slots of a vector env; for one thread at a time.

    Args:
        envs: The wrapped envs.
        pool: Where they work.
        group_size: So many neighbours have the same sequence of tasks.
        prefetch: Whether the end of an episode begins the next reset at once.
    """

    def __init__(
        self,
        envs: Sequence[gym.Env[Any, Any]],
        pool: ThreadPool,
        *,
        group_size: int,
        prefetch: bool,
    ) -> None:
        done: SimpleQueue[tuple[Slot, Future[Transition]]] = SimpleQueue()
        self.all = [
            Slot(index, env, pool, lambda *which: done.put(which), prefetch=prefetch)
            for index, env in enumerate(envs)
        ]
        self._done = done
        self._ready: list[Slot] = []  # done, and not taken yet
        self._group_size = group_size
        seeds = np.random.SeedSequence().generate_state(len(envs) // group_size)
        self._own_seeds = [int(seed) for seed in seeds]

    def begin_resets(
        self, slots: Sequence[Slot], seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> None:
        """Begins a reset of each of some idle slots.

        Without seed and options, the slots of a group leave out what the one furthest ahead had.

        Args:
            slots: Which.
            seeds: A seed, or None, for each slot of all.
            options: As for a single env.
        """
        furthest: dict[int, int] = {}
        for slot in slots:
            group = slot.index // self._group_size
            furthest[group] = max(furthest.get(group, 0), slot.num_episodes)
        for slot in slots:
            group = slot.index // self._group_size
            seed = seeds[slot.index]
            if seed is None and self._group_size > 1 and not slot.is_seeded:
                seed = self._own_seeds[group]
            slot.begin_reset(seed, options, furthest[group] - slot.num_episodes)

    def chosen(self, env_ids: Sequence[int] | NDArray[Any]) -> list[Slot]:
        """Returns the slots of these numbers, in that order.

        Raises:
            InvalidArgumentError: One is no slot's number, or there twice.
        """
        ids = list(env_ids)
        are_numbers = all(is_integer(index) for index in ids)
        ids = [int(index) for index in ids] if are_numbers else ids
        if not are_numbers or len(set(ids)) < len(ids) or not set(ids) <= set(range(len(self.all))):
            raise InvalidArgumentError(
                f"env_ids must be different numbers from 0 to {len(self.all) - 1}, got {ids}"
            )
        return [self.all[index] for index in ids]

    def ask(self, asks: Sequence[Callable[[gym.Env[Any, Any]], Any]], what: str) -> tuple[Any, ...]:
        """Returns what one function for each slot gives for its env; they run at once.

        Args:
            asks: The functions.
            what: The caller's name, for errors.
        """
        self.check_idle(what, self.all)
        return _results([s.begin_call(ask) for s, ask in zip(self.all, asks, strict=True)])

    def snapshot(self, index: int) -> EnvSnapshot:
        """Returns a snapshot of one env, whose episode is running."""
        (slot,) = self.chosen([index])
        self.check_idle("snapshot", [slot])
        if slot.is_started and slot.is_ended:  # with prefetch, its env is in the next one already
            raise EpisodeError(f"the episode of env {index} has ended; the next action begins one")
        moment: EnvSnapshot
        (moment,) = _results([slot.begin_call(snapshot)])
        return moment

    def check_idle(self, what: str, slots: Sequence[Slot]) -> None:
        """Raises EpisodeError where an action is under way in one of the slots."""
        busy = [slot.index for slot in slots if slot.pending is not None]
        if busy:
            raise EpisodeError(
                f"{what} was called while an action is under way in env {busy[0]}"
                + (f" and {len(busy) - 1} more" if len(busy) > 1 else "")
                + "; recv its result first, or reset"
            )

    def check_started(self, slots: Sequence[Slot]) -> None:
        """Raises EpisodeError where one of the slots had no reset yet."""
        if not all(slot.is_started for slot in slots):
            raise EpisodeError("there are no episodes yet; call reset first")

    def wait(self, num: int) -> list[Slot]:
        """Waits until so many are done; returns all that are, by their index.

        Raises:
            InvalidArgumentError: So many will never be.
        """
        num_busy = sum(slot.pending is not None for slot in self.all)
        if num > num_busy:
            raise InvalidArgumentError(
                f"recv cannot wait for {num} envs: an action is under way in {num_busy}; "
                "send actions first"
            )
        # An interrupt may have come between a note's arrival and its keeping.
        self._ready = [slot for slot in self.all if slot.is_done]
        while len(self._ready) < num:
            self._note(*self._done.get())
        with suppress(Empty):
            while True:
                self._note(*self._done.get_nowait())
        return sorted(self._ready, key=lambda slot: slot.index)

    def take(self, slots: Sequence[Slot]) -> list[Transition]:
        """Takes the results of slots that are done.

        Raises:
            Exception: What the first env that failed raised; the results of the others stay.
        """
        for slot in slots:
            if slot.has_failed:
                self._ready.remove(slot)
                slot.take()  # raises
        self._ready = [slot for slot in self._ready if slot not in slots]
        return [slot.take() for slot in slots]

    def take_all(self) -> list[Transition]:
        """Waits for every busy slot and takes the results; nothing is under way after an error."""
        try:
            return self.take(self.wait(sum(slot.pending is not None for slot in self.all)))
        except Exception:  # whatever an env raised goes on, and no other result is left under way
            self.drop_all()
            raise

    def drop_all(self) -> None:
        """Waits for every busy slot, and forgets the results."""
        for slot in self.all:
            if slot.pending is not None:
                with suppress(Exception):  # nobody asked for the result, so nor for its failure
                    slot.take()
        self._ready.clear()

    def _note(self, slot: Slot, done: "Future[Transition]") -> None:
        # Else it was dropped meanwhile, or is there already.
        if slot.pending is done and slot not in self._ready:
            self._ready.append(slot)


def _results(futures: "Sequence[Future[Any]]") -> tuple[Any, ...]:
    """Waits for calls in envs; none of them is under way afterwards, come what may."""
    try:
        wait(futures)
    except BaseException:  # an interrupt; the next action shall not meet a call in its env
        for future in futures:
            future.cancel()
        wait(futures)
        raise
    return tuple(future.result() for future in futures)
