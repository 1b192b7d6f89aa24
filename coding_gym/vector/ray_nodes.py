"""The nodes of a Ray cluster, one actor on each node, and the placement of episodes."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from threading import Lock
from typing import Any

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.optional import import_extra
from coding_gym.task import Task

# An episode that loses this many actors raises an error, because the episode is the probable cause,
# for instance by exhausting memory. With a smaller number, unrelated losses would do so, too.
_MAX_LOSSES = 5

_KEY = "OPENAI_API_KEY"
_MAX_EXTRA_LOAD = 1.0  # episodes per CPU, above the node with the fewest


class LostNodeError(SandboxError):
    """The node of an episode, or the actor on the node, died."""


@dataclass(slots=True, eq=False)
class Node:
    """One node and its load.

    Attributes:
        node_id: Ray's id of the node.
        actor: The handle of the actor on the node.
        num_cpus: Number of CPUs of the node in Ray's resources.
        num_running: Number of episodes on the node.
        environments: Keys of the environments and images of tasks that were placed on the node.
    """

    node_id: str
    actor: Any
    num_cpus: float
    num_running: int = 0
    environments: set[str] = field(default_factory=set)


class RayNodes:
    """The nodes of a cluster that have CPUs, including nodes that join later; thread-safe.

    An actor reserves no CPU, because an episode mostly waits for its sandbox or its model. A node
    without ``OPENAI_API_KEY`` gets the key of this process.

    Args:
        address: The cluster, as for ``ray.init``; an existing connection of this process is used.
        create: Creates, on a node, an object to which `start` and `call` apply functions.
        concurrency: Maximum number of simultaneous calls on a node.

    Raises:
        MissingDependencyError: Ray is not installed.
        InvalidArgumentError: The cluster does not exist, or cloudpickle cannot pickle ``create``.
    """

    def __init__(self, address: str, create: Callable[[], Any], concurrency: int) -> None:
        self._address = address
        self.ray = import_extra("ray", "ray")
        try:
            self._pickled: bytes = self.ray.cloudpickle.dumps(create)
        except TypeError as problem:
            raise InvalidArgumentError(
                f"an agent or a wrapper cannot be sent to other nodes: {problem}; play on this "
                "machine, or pass the name of a class instead of an object"
            ) from None
        self._concurrency = concurrency
        self._nodes: dict[str, Node | None] = {}  # None for a node that cannot run sandboxes
        self._lock = Lock()
        self._is_stopped = False
        self._last_problem: Exception | None = None
        self._owns_connection = not self.ray.is_initialized()
        if self._owns_connection:
            try:
                self.ray.init(address=address, log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, ValueError) as error:
                raise InvalidArgumentError(f"no cluster at address={address!r}: {error}") from None

    def start(self, task: Task, index: int, function: Callable[[Any], Any]) -> tuple[Node, Any]:
        """Starts an episode on the node from `place`, or on another node if that node is lost.

        Args:
            task: The task of the episode.
            index: As for `call`.
            function: As for `call`.

        Returns:
            The node, to `release` at the end of the episode, and the result of the function.

        Raises:
            LostNodeError: Five nodes were lost.
            SandboxUnavailableError: No live node can run the sandbox.
            Exception: The function raised this exception.
        """
        num_losses = 0
        while True:
            node = self.place(task)
            try:
                return node, self.call(node, index, function)
            except SandboxUnavailableError as failure:
                self._discard(node, failure, is_unusable=True)
            except LostNodeError:
                num_losses += 1
                if num_losses >= _MAX_LOSSES:
                    raise
            except BaseException:
                self.release(node)
                raise

    def call(self, node: Node, index: int, function: Callable[[Any], Any]) -> Any:
        """Applies a function to an object on a node, and returns the function's result.

        Args:
            node: The node.
            index: The number of the object; the node creates the object at the first call.
            function: The function.

        Raises:
            LostNodeError: The node, or the actor on the node, died; `place` starts a new actor.
            Exception: The function raised this exception.
        """
        errors = self.ray.exceptions
        try:
            return self.ray.get(node.actor.apply.remote(index, function))
        except errors.RayTaskError as failure:
            raise failure.cause from None
        except errors.RayError as failure:
            self._discard(node, failure)
            reason = str(failure).partition("\n")[0]
            raise LostNodeError(f"the node of the episode was lost: {reason}") from None

    def place(self, task: Task) -> Node:
        """Returns the node with the fewest episodes per CPU, and counts the new episode.

        A task with an environment or image is placed on a node that already has this environment or
        image, unless this node has over 1 episode per CPU more than the least busy node.

        Raises:
            SandboxUnavailableError: No live node can run the sandbox.
        """
        environment = environment_of(task)
        with self._lock:
            nodes = self._usable_nodes()
            min_load = min(_load(node) for node in nodes)
            nodes_with_environment = [
                node
                for node in nodes
                if environment in node.environments and _load(node) <= min_load + _MAX_EXTRA_LOAD
            ]
            candidates = nodes_with_environment or nodes
            target = min(candidates, key=lambda node: (_load(node), node.node_id))
            target.num_running += 1
            if environment:
                target.environments.add(environment)
            return target

    def release(self, node: Node) -> None:
        """Removes an ended episode from the count of the node."""
        with self._lock:
            node.num_running -= 1

    def stop(self) -> None:
        """Ends the actors and with them all calls; no further episode is placed; idempotent."""
        with self._lock:
            self._is_stopped = True
            nodes, self._nodes = list(filter(None, self._nodes.values())), {}
        if self.ray.is_initialized():
            for node in nodes:
                self.ray.kill(node.actor)

    def close(self) -> None:
        """Ends the actors, and the connection to Ray if this object opened it; idempotent."""
        self.stop()
        if self._owns_connection:
            self.ray.shutdown()

    def _discard(self, node: Node, problem: Exception, *, is_unusable: bool = False) -> None:
        """Removes a node whose actor died, or that can never run sandboxes."""
        with self._lock:
            self._last_problem = problem
            if self._nodes.get(node.node_id) is not node:
                return
            if is_unusable:
                self._nodes[node.node_id] = None
            else:
                del self._nodes[node.node_id]

    def _usable_nodes(self) -> list[Node]:
        """Returns the nodes that are alive and can run sandboxes; starts actors on new nodes."""
        num_cpus = {} if self._is_stopped else self._num_cpus()
        for node_id in num_cpus.keys() - self._nodes.keys():
            if num_cpus[node_id]:
                self._nodes[node_id] = Node(node_id, self._start_actor(node_id), num_cpus[node_id])
        nodes = [node for key, node in self._nodes.items() if node and key in num_cpus]
        if not nodes:
            reason = f"; {self._last_problem}" if self._last_problem else ""
            raise SandboxUnavailableError(
                f"the cluster {self._address!r} has no node that can run the sandbox{reason}"
            )
        return nodes

    def _num_cpus(self) -> dict[str, float]:
        """Returns the number of CPUs of each live node, by its id."""
        nodes = self.ray.nodes()
        return {n["NodeID"]: n["Resources"].get("CPU", 0) for n in nodes if n["Alive"]}

    def _start_actor(self, node_id: str) -> Any:
        strategies = import_module("ray.util.scheduling_strategies")
        options = {
            "num_cpus": 0,
            "max_concurrency": self._concurrency,
            "scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(node_id, soft=False),
        }
        return (
            self.ray.remote(_Worker)
            .options(**options)
            .remote(self._pickled, os.environ.get(_KEY, ""))
        )


class _Worker:
    """The actor on a node: applies functions to objects, each created at the first call.

    Args:
        pickled: The function that creates an object, by cloudpickle.
        api_key: The driver's ``OPENAI_API_KEY``, for a node without this variable; or "".
    """

    def __init__(self, pickled: bytes, api_key: str) -> None:
        if api_key:
            os.environ.setdefault(_KEY, api_key)
        self._pickled = pickled
        self._objects: dict[int, Any] = {}
        self._lock = Lock()  # calls for an object can overlap

    def apply(self, index: int, function: Callable[[Any], Any]) -> Any:
        """Applies a function to the object with this number; returns the function's result."""
        with self._lock:
            if index not in self._objects:  # an error in `__init__` would lose the node
                cloudpickle = import_extra("ray", "ray").cloudpickle
                self._objects[index] = cloudpickle.loads(self._pickled)()
        return function(self._objects[index])


def environment_of(task: Task) -> str:
    """Returns a key of a task's environment; "" if it is this process's interpreter."""
    if task.image:
        return task.image
    if task.interpreter == "base" and not task.install_commands:
        return ""
    commit = task.environment_setup_commit
    parts = (task.repo, task.version, commit, task.interpreter, *task.install_commands)
    return json.dumps(parts)


def _load(node: Node) -> float:
    return node.num_running / node.num_cpus
