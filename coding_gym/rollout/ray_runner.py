"""A runner for the nodes of a Ray cluster, with the same results as on one machine."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

from coding_gym.agents.model_errors import public_text
from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError
from coding_gym.optional import import_extra
from coding_gym.rollout.runner import MAX_THREADS, Runner, attempt_seed
from coding_gym.task import Task
from coding_gym.trajectory import Trajectory
from coding_gym.vector.ray_nodes import MAX_LOSSES, RayNodes

_KEY = "OPENAI_API_KEY"


@dataclass(kw_only=True)
class RayRunner(Runner):
    """Plays attempts on all nodes of a cluster that have CPUs; `RayNodes` places them.

    Every node builds the templates of its tasks, and needs this package and the files of the tasks
    at the same paths. Attempts of a lost node are played on other nodes; nodes that join are used.
    A node without ``OPENAI_API_KEY`` uses the key of the driver.

    Attributes:
        address: The cluster, as for `ray.init`: ``"auto"``, ``"local"``, or an address.
    """

    address: str = "auto"
    _nodes: RayNodes = field(init=False, repr=False)

    async def run(
        self, attempts: Iterable[tuple[Task, int]], on_done: Callable[[Trajectory], None]
    ) -> None:
        """Plays attempts; see `Runner.run`.

        Raises:
            MissingDependencyError: Ray is not installed.
            InvalidArgumentError: The cluster is unknown, or the agent cannot be pickled.
            SandboxUnavailableError: None of the remaining nodes can run the sandbox.
        """
        arguments = self._pickled(), os.environ.get(_KEY, "")
        self._nodes = RayNodes(self.address, _Player, arguments, self.concurrency)
        try:
            await super().run(attempts, on_done)
        finally:
            self._nodes.close()

    async def play(
        self,
        task: Task,
        attempt: int,
        threads: Executor,  # noqa: ARG002 - each node has threads
        failure: Exception | None = None,  # `ImageWindows` needs one machine
    ) -> Trajectory:
        """Plays one attempt on the least busy node; see `Runner.play`."""
        errors = self._nodes.ray.exceptions
        problem: Exception | None = None
        losses = 0
        while losses < MAX_LOSSES:
            node = self._nodes.place(task)
            try:
                record: Trajectory = await node.actor.play.remote(task, attempt)
            except SandboxUnavailableError as failure:
                self._nodes.discard(node, failure, is_unusable=True)
            except errors.RayTaskError:
                raise
            except errors.RayError as failure:  # the actor or its node has died
                problem, losses = failure, losses + 1
                self._nodes.discard(node, failure)
            else:
                for turn in record.turns:
                    self.on_turn(turn)
                return record
            finally:
                self._nodes.release(node)
        return Trajectory(
            task_id=task.task_id,
            agent=self.player.name,
            model=self.player.model,
            seed=attempt_seed(self.seed, task.task_id, attempt),
            attempt=attempt,
            run_id=self.run_id,
            error=public_text(f"the worker of this attempt died {losses} times: {problem}"),
            error_class="sandbox",
        )

    def _pickled(self) -> bytes:
        """Returns the pickled runner that plays the attempts of a node."""
        node_runner = Runner(
            config=replace(self.config, tasks=()),  # `play` receives each task
            player=self.player,
            concurrency=self.concurrency,
            seed=self.seed,
            run_id=self.run_id,
        )
        try:
            pickled: bytes = import_extra("ray", "ray").cloudpickle.dumps(node_runner)
        except TypeError as problem:
            raise InvalidArgumentError(
                f"agent {self.player.name!r} cannot be sent to other nodes: {problem}; omit ray"
            ) from None
        return pickled


class _Player:
    """The Ray actor that plays the attempts of one node, in one event loop."""

    def __init__(self, runner: bytes, api_key: str) -> None:
        if api_key:
            os.environ.setdefault(_KEY, api_key)
        self._pickled = runner
        self._threads = ThreadPoolExecutor(MAX_THREADS)

    @cached_property
    def _runner(self) -> Runner:  # lazily: an error in `__init__` would count as a lost node
        runner: Runner = import_extra("ray", "ray").cloudpickle.loads(self._pickled)
        return runner

    async def play(self, task: Task, attempt: int) -> Trajectory:
        return await self._runner.play(task, attempt, self._threads)
