"""One env of a vector env, with its thread and its queue of jobs."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread, current_thread
from typing import Any, NamedTuple

import gymnasium as gym

Job = tuple["Future[Any]", Callable[[], Any]]


class Transition(NamedTuple):
    """The result of an action or a reset; a reset has reward 0 and both flags False."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Slot:
    """One env of a vector env; its jobs run one after the other on a separate thread.

    The thread is a daemon, so the interpreter exits without waiting for long commands. The thread
    refers to the queue only, so an unused vector env is garbage-collected.

    Args:
        index: The number of the env in the vector env.
        env: The env with its wrappers.

    Attributes:
        pending: The future of the action or reset whose result is not yet taken, or None.
        is_ended: Whether the episode has ended; the next action then starts the next episode.
        latest: The last result; None before the first reset.
    """

    def __init__(self, index: int, env: gym.Env[Any, Any]) -> None:
        self.index = index
        self.env = env
        self.pending: Future[Transition] | None = None
        self.is_ended = True
        self.latest: Transition | None = None
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        name = f"coding_gym-vector-{index}"
        self._thread = Thread(target=_run_jobs, args=(self._jobs,), name=name, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs; it does not survive a fork."""
        return self._thread.is_alive()

    def begin_step(self, action: Any) -> None:
        """Starts an action; if the episode has ended, starts the next episode instead."""
        if self.is_ended:
            self.begin_reset()
        else:
            self.pending = self._submit(partial(self._step, action))

    def begin_reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        """Starts a new episode, with arguments of ``env.reset``."""
        self.pending = self._submit(partial(self._reset, seed, options))

    def take(self) -> Transition:
        """Waits for the pending result and returns it, or raises the exception of the env."""
        assert self.pending is not None  # noqa: S101 - the vector env calls it for busy slots only
        failure = self.pending.exception()  # waits; after an interrupt the result is still pending
        future, self.pending = self.pending, None
        if failure is not None:
            core: Any = self.env.unwrapped
            self.is_ended = not core.is_running
            failure.add_note(f"raised by env {self.index} of a vector env")
            raise failure
        self.latest = transition = future.result()
        self.is_ended = transition.terminated or transition.truncated
        return transition

    def drop(self) -> None:
        """Waits for a pending result and discards it."""
        if self.pending is not None:
            with suppress(Exception):  # no caller needs the result or its failure
                self.take()

    def stop(self) -> None:
        """Ends a running command, and the thread after the current job; returns immediately."""
        self._jobs.put(None)
        self.env.unwrapped.close()

    def join(self) -> None:
        """Waits until the thread has ended; call `stop` first."""
        if self._thread is not current_thread():  # a wrapper can close its vector env
            self._thread.join()

    def _submit(self, function: Callable[[], Any]) -> "Future[Any]":
        future: Future[Any] = Future()
        self._jobs.put((future, function))
        return future

    def _step(self, action: Any) -> Transition:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return Transition(observation, float(reward), terminated, truncated, info)

    def _reset(self, seed: int | None, options: Mapping[str, Any] | None) -> Transition:
        options_copy: Any = dict(options) if isinstance(options, Mapping) else options
        observation, info = self.env.reset(seed=seed, options=options_copy)
        return Transition(observation, 0.0, False, False, info)


def _run_jobs(jobs: "SimpleQueue[Job | None]") -> None:
    """Runs jobs until the queue returns None; keeps no reference to a finished job."""
    while job := jobs.get():
        future, function = job
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            future.set_exception(error)
        del job, future, function
