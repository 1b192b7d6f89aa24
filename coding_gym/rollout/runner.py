"""Plays many episodes of one agent at the same time, each attempt exactly once."""

import asyncio
import hashlib
import logging
import time
import traceback
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

from coding_gym.agents.model_errors import ModelError, public_text
from coding_gym.agents.player import LiveEpisode, Player
from coding_gym.calls import SUMMED_COUNTS
from coding_gym.episode import Episode, EpisodeConfig
from coding_gym.errors import (
    CodingGymError,
    InfrastructureError,
    InvalidTaskError,
    SandboxUnavailableError,
)
from coding_gym.rollout.image_windows import ImageWindows
from coding_gym.run_folder import Outcome
from coding_gym.task import Task
from coding_gym.trajectory import Trajectory, Turn

MAX_THREADS = 64  # an attempt uses a thread for commands and grades, not during model requests

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Runner:
    """Plays attempts on one machine, in one event loop and a limited number of threads.

    Attributes:
        config: The settings of the episodes.
        player: The agent.
        concurrency: Maximum number of simultaneous episodes.
        seed: Seed of the run; `attempt_seed` derives the seeds of attempts from it.
        run_id: The run's id in records.
        max_cost: No more episodes begin after the ended episodes have cost this much; running
            episodes are played to their end.
        max_tokens: As ``max_cost``, for the number of tokens of prompts and replies.
        max_lost: No more episodes begin after this many consecutive attempts ended with an error.
        cost: Cost of the requests of all ended episodes, in the currency of the prices; a resumed
            run starts with the cost of its earlier episodes.
        tokens: Tokens of the prompts and replies of all ended episodes, as for ``cost``.
        images: Pulls and removes the images of tasks; None if all images are on disk.
        on_turn: Called with every turn; on Ray after the end of the episode, else immediately; a
            turn of a harness has no results at that time.
        stopped: The reason why no more episodes begin, other than ``max_cost`` and ``max_tokens``;
            "" if there is no other reason.

    Raises:
        InvalidArgumentError: The agent cannot enforce a limit of the episodes.
    """

    config: EpisodeConfig
    player: Player
    concurrency: int = 1
    seed: int = 0
    run_id: str = ""
    max_cost: float | None = None
    max_tokens: int | None = None
    max_lost: int | None = None
    cost: float = 0.0
    tokens: int = 0
    images: ImageWindows | None = None
    on_turn: Callable[[Turn], None] = lambda _: None
    stopped: str = ""
    _num_errors: int = field(default=0, init=False)  # consecutive

    def __post_init__(self) -> None:
        """Raises InvalidArgumentError for limits that the agent cannot enforce."""
        self.player.check(self.config.limits)

    @property
    def stop_reason(self) -> str:
        """The reason why no more episodes begin, or ""."""
        if self.max_cost is not None and self.cost >= self.max_cost:
            return f"max_cost of {self.max_cost:g} is reached; remedy: a larger max_cost"
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            return f"max_tokens of {self.max_tokens} is reached; remedy: a larger max_tokens"
        return self.stopped

    def interrupt(self) -> None:
        """Lets no more episodes begin, as Ctrl-C does; running episodes continue to their end."""
        _log.warning(
            "interrupted: running episodes continue to their end; interrupt again to stop them"
        )
        self.stopped = self.stopped or "interrupted"

    async def run(
        self, attempts: Iterable[tuple[Task, int]], on_done: Callable[[Trajectory], None]
    ) -> None:
        """Plays attempts until all are done or `stop_reason` is set.

        Args:
            attempts: Pairs of a task and the number of an attempt.
            on_done: Called with each record, by one thread at a time.

        Raises:
            SandboxUnavailableError: This machine cannot run the sandbox, or cannot pull images.
        """
        remaining = iter(attempts)
        num_threads = min(self.concurrency, MAX_THREADS)
        with (
            ThreadPoolExecutor(num_threads, "coding_gym-run") as threads,
            ThreadPoolExecutor(1, "coding_gym-records") as records,
        ):
            loop = asyncio.get_running_loop()

            async def work() -> None:
                for task, attempt in takewhile(lambda _: not self.stop_reason, remaining):
                    async with (
                        self.images.pulled(task) if self.images else nullcontext() as failure
                    ):
                        if self.stop_reason:  # set while the image was pulled
                            break
                        trajectory = await self.play(task, attempt, threads, failure)
                    self._count(trajectory)
                    await loop.run_in_executor(records, on_done, trajectory)

            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(self.concurrency):
                        group.create_task(work())
            except BaseExceptionGroup as failures:  # failures of this machine or the disk
                raise failures.exceptions[0] from None
            finally:
                await self.player.close()

    def _count(self, record: Trajectory) -> None:
        """Adds an ended episode to the cost and the tokens, and to the consecutive errors."""
        outcome, problem = Outcome.of(record), ""
        self.cost += outcome.cost or 0.0
        self.tokens += outcome.tokens
        self._num_errors = self._num_errors + 1 if record.error_class else 0
        has_calls, counts = record.usage.get("model_calls"), record.usage.keys()
        if self.max_cost is not None and has_calls and outcome.cost is None:
            problem = "max_cost cannot be enforced without prices and a server that reports tokens"
        elif self.max_tokens is not None and has_calls and not counts >= set(SUMMED_COUNTS):
            problem = "max_tokens cannot be enforced: the server does not report tokens"
        elif self.max_lost is not None and self._num_errors >= self.max_lost:
            problem = f"max_lost: the last {self._num_errors} attempts ended with an error"
        self.stopped = self.stopped or problem

    async def play(
        self, task: Task, attempt: int, threads: Executor, failure: Exception | None = None
    ) -> Trajectory:
        """Plays one attempt; returns its record, with any error but SandboxUnavailableError.

        Args:
            task: The task.
            attempt: Number of the attempt.
            threads: The threads that run commands and grades.
            failure: An error that prevents the attempt, such as a missing image.
        """
        started_at = datetime.now(UTC)
        seed = attempt_seed(self.seed, task.task_id, attempt)
        episode = Episode(task, self.config)
        live = LiveEpisode(episode, threads, seed, attempt, self.on_turn)
        try:
            if failure:
                raise failure
            try:
                await live.play(self.player)
            finally:
                # On another thread: all of `threads` may wait for commands that `close` ends.
                await asyncio.shield(asyncio.to_thread(episode.close))
        except SandboxUnavailableError:
            raise
        except Exception as problem:  # noqa: BLE001 - a failure of an agent must not end the run
            failure = problem
        return replace(
            _record(live, failure),
            agent=self.player.name,
            model=self.player.model,
            run_id=self.run_id,
            started_at=started_at.isoformat(timespec="milliseconds"),
        )


def _record(live: LiveEpisode, failure: Exception | None) -> Trajectory:
    """Returns the record of an attempt that has ended, or failed."""
    record = live.episode.trajectory()
    error, error_class = "", record.error_class
    if failure is not None:
        error, error_class = _error(failure)
        _log.info("%s, attempt %d: %s", record.task_id, live.attempt, error)
    return replace(
        record,
        seed=live.seed,
        attempt=live.attempt,
        error=public_text(error or live.error or record.error),
        error_class=error_class,
        duration_s=time.perf_counter() - live.start_s,
    )


def _error(failure: Exception) -> tuple[str, str]:
    """Returns message and class of a failure."""
    match failure:
        case ModelError():
            return str(failure), failure.error_class
        case InfrastructureError() | InvalidTaskError():
            return str(failure), "sandbox"
        case CodingGymError():  # the message explains the failure
            return str(failure), "agent"
    return "".join(traceback.format_exception(failure, limit=-3)), "agent"


def run_in_thread(
    episodes: Coroutine[Any, Any, None], on_interrupt: Callable[[], None] | None = None
) -> None:
    """Runs a coroutine in a thread, because notebooks run an event loop; Ctrl-C cancels the run.

    Args:
        episodes: The coroutine.
        on_interrupt: Called at the first Ctrl-C; then only the second Ctrl-C cancels the coroutine.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(episodes)

    async def play() -> None:
        await task

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(play())

    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(run)
        try:
            try:
                future.result()
            except KeyboardInterrupt:
                if on_interrupt is None:
                    raise
                on_interrupt()
                future.result()
        except BaseException:
            with suppress(RuntimeError):  # the loop has already ended
                loop.call_soon_threadsafe(task.cancel)
            raise


def attempt_seed(seed: int, task_id: str, attempt: int) -> int:
    """Returns the seed of an attempt, 0 to 2³¹ - 1; equal in every process."""
    digest = hashlib.sha256(f"{seed}\0{task_id}\0{attempt}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
