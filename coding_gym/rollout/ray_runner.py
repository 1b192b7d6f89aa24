"""A runner for the nodes of a Ray cluster, with the same results as on one machine."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from operator import methodcaller
from threading import Thread

from coding_gym.rollout.runner import MAX_THREADS, Runner
from coding_gym.task import Task
from coding_gym.trajectory import Trajectory
from coding_gym.vector.ray_nodes import LostNodeError, RayNodes


@dataclass(kw_only=True)
class RayRunner(Runner):
    """Plays attempts on all nodes of a cluster that have CPUs; `RayNodes` places them.

    Every node builds the templates of its tasks. This package and the files of the tasks must have
    the same paths on all nodes. Attempts of a lost node are played again on other nodes; an attempt
    that has lost five nodes ends with an error. Nodes that join the cluster later get attempts too.

    Attributes:
        address: The cluster, as for `ray.init`: ``"auto"``, ``"local"``, or an address.
    """

    address: str = "auto"
    _nodes: RayNodes = field(init=False, repr=False)
    _waiting: Executor = field(init=False, repr=False)

    async def run(
        self, attempts: Iterable[tuple[Task, int]], on_done: Callable[[Trajectory], None]
    ) -> None:
        """Plays attempts; see `Runner.run`.

        Raises:
            MissingDependencyError: Ray is not installed.
            InvalidArgumentError: The cluster is unknown, or the agent cannot be pickled.
            SandboxUnavailableError: None of the remaining nodes can run the sandbox.
        """
        node_runner = Runner(
            config=replace(self.config, tasks=()),  # `play` receives each task
            player=self.player,
            seed=self.seed,
            run_id=self.run_id,
        )
        nodes = RayNodes(self.address, partial(_NodePlayer, node_runner), self.concurrency)
        with (
            closing(nodes) as self._nodes,
            ThreadPoolExecutor(self.concurrency) as self._waiting,
        ):
            try:
                await super().run(attempts, on_done)
            finally:
                self._nodes.stop()  # ends the calls for which threads wait

    async def play(
        self, task: Task, attempt: int, threads: Executor, failure: Exception | None = None
    ) -> Trajectory:
        """Plays one attempt on the least busy node; see `Runner.play`."""
        loop, function = asyncio.get_running_loop(), methodcaller("play", task, attempt)
        record: Trajectory
        try:
            node, record = await loop.run_in_executor(
                self._waiting, self._nodes.start, task, 0, function
            )
        except LostNodeError as problem:
            return await super().play(task, attempt, threads, failure or problem)
        self._nodes.release(node)
        for turn in record.turns:
            self.on_turn(turn)
        return record


class _NodePlayer:
    """Plays the attempts of one node, in one event loop.

    Args:
        runner: Plays the attempts.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner, self._threads = runner, ThreadPoolExecutor(MAX_THREADS)
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()

    def play(self, task: Task, attempt: int) -> Trajectory:
        episode = self._runner.play(task, attempt, self._threads)
        return asyncio.run_coroutine_threadsafe(episode, self._loop).result()
