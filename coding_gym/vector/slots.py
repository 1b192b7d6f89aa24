"""One env of a vector env: whether it is busy, has a result, or begins an episode."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

import gymnasium as gym

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
        prefetch: Whether the end of an episode begins the next reset at once.
    """

    def __init__(
        self, index: int, env: gym.Env[Any, Any], pool: ThreadPool, *, prefetch: bool
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
        self._prefetch = prefetch
        self._prefetched: Future[Transition] | None = None
        self._owed: str | None = None  # a task that was drawn and not used

    def begin_step(self, action: Any) -> None:
        """Begins an action, or where the episode has ended the next one."""
        if self.is_ended:
            self.begin_reset()
        else:
            self.pending = self._pool.submit(self._step, action)

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
            self.pending = self._pool.submit(self._reset, seed, options)
            return
        self.num_episodes += num_skipped + 1
        if self._prefetched is not None and not num_skipped:
            self.pending, self._prefetched = self._prefetched, None
        else:
            self.pending = self._pool.submit(self._advance, num_skipped)

    @property
    def is_done(self) -> bool:
        """Whether `take` would not wait."""
        return self.pending is not None and self.pending.done()

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
        return self._begin(seed, options)

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
        return self._begin(None, None if owed is None else {"task_id": owed})

    def _begin(self, seed: int | None, options: Mapping[str, Any] | None) -> Transition:
        own_options = None if options is None else dict(options)
        observation, info = self.env.reset(seed=seed, options=own_options)
        return Transition(observation, 0.0, False, False, info)

    def _drop_prefetched(self) -> None:
        prefetched, self._prefetched = self._prefetched, None
        if prefetched is not None and prefetched.exception() is None:
            self._owed = prefetched.result().info["task_id"]
