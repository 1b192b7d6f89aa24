"""The envs of a vector env: which are busy, which have results, and which begin an episode."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from coding_gym.arguments import is_integer
from coding_gym.envs.snapshot import EnvSnapshot, snapshot
from coding_gym.errors import EpisodeError, InvalidArgumentError
from coding_gym.vector.thread_pool import ThreadPool


class Transition(NamedTuple):
    """The result of one action, or of a reset (then reward 0 and both flags False)."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Slot:
    """One env of a vector env: at most one action is under way, on the pool's threads.

    Tasks come from the env's own sampler, in a sequence that a seed begins. Resetting ahead of time
    (``prefetch``) never changes that sequence: a task that was drawn and then not wanted, because
    ``reset`` named another, comes next.

    Args:
        index: Its place in the vector env.
        env: The wrapped env.
        pool: Where its jobs run.
        on_done: Is called with the slot and its ``pending`` when that is done, in any thread.
        prefetch: Whether the end of an episode begins the next reset at once.
    """

    def __init__(
        self,
        index: int,
        env: gym.Env[Any, Any],
        pool: ThreadPool,
        on_done: Callable[["Slot", Future[Transition]], None],
        *,
        prefetch: bool,
    ) -> None:
        self.index = index
        self.env = env
        self.pending: Future[Transition] | None = None  # what `take` will return
        self.is_started = False
        self.is_ended = True  # the next action is ignored, and a new episode begins
        self.is_seeded = False
        self.num_episodes = 0  # begun since the last seed, of the env's own sequence
        self.observation: Any = None
        self._pool = pool
        self._on_done = on_done
        self._prefetch = prefetch
        self._prefetched: Future[Transition] | None = None
        self._owed: str | None = None  # a task that was drawn and not used

    def begin_step(self, action: Any) -> None:
        """Begins an action, or where the episode has ended the next one."""
        if self.is_ended:
            self.begin_reset()
        else:
            self._await(self._pool.submit(self._step, action))

    def begin_reset(
        self,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
        num_skipped: int = 0,
    ) -> None:
        """Begins a new episode.

        Args:
            seed: As for ``env.reset``.
            options: As for ``env.reset``.
            num_skipped: Episodes of the env's own sequence to leave out; without seed and options.
        """
        self.is_ended = True  # should the reset fail, the next action tries another
        if seed is not None:
            self.is_seeded = True
            self.num_episodes = 0 if options else 1
        if seed is not None or options:
            self._await(self._pool.submit(self._reset, seed, options))
            return
        self.num_episodes += num_skipped + 1
        prefetched = self._prefetched
        if prefetched is not None and not num_skipped:
            self._prefetched = None
            self._await(prefetched)
        else:
            self._await(self._pool.submit(self._advance, num_skipped))

    @property
    def is_done(self) -> bool:
        """Whether `take` would not wait."""
        return self.pending is not None and self.pending.done()

    @property
    def has_failed(self) -> bool:
        """Whether what is done raised something."""
        return self.pending is not None and self.pending.exception() is not None

    def take(self) -> Transition:
        """Waits for what is under way and returns it, or raises what the env raised."""
        assert self.pending is not None  # noqa: S101 - the vector env asks busy slots only
        failure = self.pending.exception()  # an interrupt while this waits leaves it under way
        done, self.pending = self.pending, None
        if failure is not None:
            core: Any = self.env.unwrapped
            self.is_ended = self.is_ended or core.episode.ended  # a wrapper may fail after the end
            failure.add_note(f"raised by env {self.index} of a vector env")
            try:
                raise failure
            finally:
                del failure, done  # which the traceback would hold, and they it
        transition = done.result()
        self.is_started = True
        self.is_ended = transition.terminated or transition.truncated
        self.observation = transition.observation
        return transition

    def begin_call(self, work: Callable[[gym.Env[Any, Any]], Any]) -> Future[Any]:
        """Begins a call with the env, after a reset that is under way in the background."""

        def call() -> Any:
            if self._prefetched is not None:
                wait([self._prefetched])
            return work(self.env)

        return self._pool.submit(call)

    def interrupt(self) -> None:
        """Ends the running episode under the action that is under way."""
        self.env.unwrapped.close()

    def _await(self, future: Future[Transition]) -> None:
        self.pending = future
        future.add_done_callback(lambda done: self._on_done(self, done))

    # What follows runs on the pool's threads, one at a time for each slot.

    def _step(self, action: Any) -> Transition:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._prefetch and (terminated or truncated):
            self._prefetched = self._pool.submit(self._draw)
        return Transition(observation, float(reward), terminated, truncated, info)

    def _reset(self, seed: int | None, options: Mapping[str, Any] | None) -> Transition:
        self._drop_prefetched()
        if seed is not None:
            self._owed = None
        given = None if options is None else dict(options)
        observation, info = self.env.reset(seed=seed, options=given)
        return Transition(observation, 0.0, False, False, info)

    def _advance(self, num_skipped: int) -> Transition:
        self._drop_prefetched()
        for _ in range(num_skipped):
            if self._owed is None:
                self.env.reset()
            self._owed = None
        return self._draw()

    def _draw(self) -> Transition:
        """Begins the next episode of the env's own sequence."""
        owed, self._owed = self._owed, None
        options = None if owed is None else {"task_id": owed}
        observation, info = self.env.reset(options=options)
        return Transition(observation, 0.0, False, False, info)

    def _drop_prefetched(self) -> None:
        prefetched, self._prefetched = self._prefetched, None
        if prefetched is not None and prefetched.exception() is None:
            self._owed = prefetched.result().info["task_id"]


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
        taken: EnvSnapshot
        (taken,) = _results([slot.begin_call(snapshot)])
        return taken

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
                with suppress(Exception):  # no caller waits for the result or its failure
                    slot.take()
        self._ready.clear()

    def _note(self, slot: Slot, done: Future[Transition]) -> None:
        # Else it was dropped meanwhile, or is there already.
        if slot.pending is done and slot not in self._ready:
            self._ready.append(slot)


def _results(futures: Sequence[Future[Any]]) -> tuple[Any, ...]:
    """Waits for calls in envs; none of them is under way afterwards, come what may."""
    try:
        wait(futures)
    except BaseException:  # an interrupt; the next action shall not meet a call in its env
        for future in futures:
            future.cancel()
        wait(futures)
        raise
    return tuple(future.result() for future in futures)
