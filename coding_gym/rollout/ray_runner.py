"""A run on the nodes of a Ray cluster, with the same results as on one machine."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any

from coding_gym.agents.live_episode import public_text
from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError
from coding_gym.optional import import_extra
from coding_gym.rollout.runner import MAX_THREADS, Runner, attempt_seed
from coding_gym.task import Task
from coding_gym.trajectory import Trajectory

_MAX_LOSSES = 3  # then the attempt itself is suspected, as by filling the memory of a node

_SENT = re.compile(r".*_API_KEY|LITELLM_.*|MSWEA_.*")  # the driver's variables that nodes get


@dataclass(kw_only=True)
class RayRunner(Runner):
    """Plays attempts on all nodes of a cluster that have CPUs, with one actor on each.

    Every node builds the templates of the tasks that it plays, and needs this package and the
    tasks' own files at the same paths. An attempt whose node is lost is played on another, and
    nodes that join are used. API keys are those of each node, else the driver's.

    Attributes:
        address: The cluster, as `ray.init` takes it: ``"auto"``, ``"local"``, or an address.
    """

    address: str = "auto"
    _nodes: dict[str, "_Node | None"] = field(default_factory=dict, init=False, repr=False)

    async def run(
        self, attempts: Iterable[tuple[Task, int]], on_done: Callable[[Trajectory], None]
    ) -> None:
        """Plays attempts; see `Runner.run`.

        Raises:
            MissingDependencyError: Ray is not installed.
            InvalidArgumentError: There is no such cluster, or the agent cannot be sent to it.
            SandboxUnavailableError: No node is left that can run the sandbox.
        """
        ray = _import_ray()
        is_ours = not ray.is_initialized()
        if is_ours:
            try:
                ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, ValueError) as problem:
                raise InvalidArgumentError(f"cannot use {self.address!r}: {problem}") from None
        try:
            await super().run(attempts, on_done)
        finally:
            for node in filter(None, self._nodes.values()):
                ray.kill(node.actor)
            self._nodes.clear()
            if is_ours:
                ray.shutdown()

    async def play(
        self,
        task: Task,
        attempt: int,
        threads: Executor,  # noqa: ARG002 - each node has its own
    ) -> Trajectory:
        """Plays one attempt on the least busy node; see `Runner.play`."""
        errors = _import_ray().exceptions
        problem: Exception | None = None
        num_lost = 0
        while num_lost < _MAX_LOSSES:
            node_id, node = self._next_node(problem)
            node.num_running += 1
            try:
                record: Trajectory = await node.actor.play.remote(task, attempt)
            except SandboxUnavailableError as failure:
                problem, self._nodes[node_id] = failure, None
            except errors.RayTaskError:
                raise
            except errors.RayError as failure:  # the actor or its node has died
                problem, num_lost = failure, num_lost + 1
                if self._nodes.get(node_id) is node:
                    del self._nodes[node_id]
            else:
                for turn in record.turns:
                    if turn.model_call is not None:
                        self.usage.add(turn.model_call)
                return record
            finally:
                node.num_running -= 1
        return Trajectory(
            task_id=task.task_id,
            agent=self.player.name,
            model=self.player.model,
            seed=attempt_seed(self.seed, task.task_id, attempt),
            attempt=attempt,
            run_id=self.run_id,
            error=public_text(f"{num_lost} nodes were lost while they played this: {problem}"),
            error_class="sandbox",
        )

    def _next_node(self, problem: Exception | None) -> tuple[str, "_Node"]:
        """Returns the node with the fewest attempts for each CPU; starts actors on new nodes."""
        alive = {
            node["NodeID"]: node["Resources"].get("CPU", 0)
            for node in _import_ray().nodes()
            if node["Alive"]
        }
        for node_id in alive.keys() - self._nodes.keys():
            if alive[node_id]:
                self._nodes[node_id] = _Node(self._start(node_id), alive[node_id])
        usable = [(key, node) for key, node in self._nodes.items() if node and key in alive]
        if not usable:
            why = f"; {problem}" if problem else ""
            raise SandboxUnavailableError(
                f"the cluster {self.address!r} has no node that can play{why}"
            )
        return min(usable, key=lambda one: (one[1].num_running / one[1].num_cpus, one[0]))

    def _start(self, node_id: str) -> Any:
        ray = _import_ray()
        strategies = import_module("ray.util.scheduling_strategies")
        plain = Runner(
            factory=replace(self.factory, tasks=()),  # each attempt brings its own
            player=self.player,
            concurrency=self.concurrency,
            seed=self.seed,
            run_id=self.run_id,
        )
        try:
            pickled = ray.cloudpickle.dumps(plain)
        except TypeError as problem:
            raise InvalidArgumentError(
                f"agent {self.player.name!r} cannot be sent to other nodes: {problem}"
            ) from None
        variables = {name: os.environ[name] for name in os.environ if _SENT.fullmatch(name)}
        options = {
            "num_cpus": 0,
            "max_concurrency": self.concurrency,
            "scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(node_id, soft=False),
        }
        return ray.remote(_Player).options(**options).remote(pickled, variables)


@dataclass(slots=True)
class _Node:
    actor: Any
    num_cpus: float
    num_running: int = 0


class _Player:
    """The actor: plays the attempts of a node in one event loop."""

    def __init__(self, runner: bytes, variables: Mapping[str, str]) -> None:
        for name, value in variables.items():
            os.environ.setdefault(name, value)
        self._pickled = runner
        self._threads = ThreadPoolExecutor(MAX_THREADS)

    @cached_property
    def _runner(self) -> Runner:  # not at the start: what it raises would be a lost node
        runner: Runner = _import_ray().cloudpickle.loads(self._pickled)
        return runner

    async def play(self, task: Task, attempt: int) -> Trajectory:
        return await self._runner.play(task, attempt, self._threads)


def _import_ray() -> Any:
    return import_extra("ray", "ray")
