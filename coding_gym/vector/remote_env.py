"""One env of a `RayVectorEnv`: episodes run on nodes, the sampler runs in this process."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

import gymnasium as gym

from coding_gym.envs.snapshot import EnvSnapshot, sequence_of, snapshot
from coding_gym.errors import (
    EpisodeError,
    InvalidArgumentError,
    SandboxError,
    SandboxUnavailableError,
)
from coding_gym.vector.ray_nodes import MAX_LOSSES, Node, RayNodes
from coding_gym.vector.sub_envs import Env, make_envs

if TYPE_CHECKING:
    from coding_gym.envs import CodingRepairEnv

Step = tuple[Any, float, bool, bool, dict[str, Any]]


class RemoteEnv(gym.Env[Any, Any]):
    """An env whose episodes run on nodes of a cluster; each reset chooses a node for its task.

    Calls wait for the node. If the node of a running episode dies, the next step truncates the
    episode, with ``mask_sample`` True in its info; the next reset chooses another node.

    Args:
        index: The number of the env in the vector env, and its key on the nodes.
        env: A local env with the same wrappers, for the spaces and the sampler; it is never reset.
        nodes: The cluster, with a `Worker` on each node.
    """

    def __init__(self, index: int, env: Env, nodes: RayNodes) -> None:
        self.index, self.env, self._nodes = index, env, nodes
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.metadata, self.spec, self.render_mode = env.metadata, env.spec, env.render_mode
        self._core = cast("CodingRepairEnv", env.unwrapped)
        self._node: Node | None = None
        self._last: tuple[Any, dict[str, Any]]  # observation and info

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode on the node from `RayNodes.place`; see `CodingRepairEnv.reset`."""
        start = self._core.choose(seed=seed, options=options)
        if isinstance(start, EnvSnapshot):
            task, options = start.episode.task, {"snapshot": start}
        else:
            task = start
            if "task" not in (options or {}):
                options = {"task_id": task.task_id}
        losses = 0
        while True:
            old_node, self._node = self._node, None
            if old_node is not None:
                self._nodes.release(old_node)
            self._node = node = self._nodes.place(task)
            if old_node is not None and old_node is not node:
                with suppress(SandboxError):  # no episode remains on a lost node
                    self._apply(old_node, lambda env: env.close())
            try:
                self._last = self._apply(node, lambda env: env.reset(seed=seed, options=options))
            except SandboxUnavailableError as failure:
                self._nodes.discard(node, failure, is_unusable=True)
            except _LostNodeError:
                losses += 1
                if losses >= MAX_LOSSES:
                    raise
            else:
                return self._last

    def step(self, action: Any) -> Step:
        """Plays one action; the class documents the result if the node dies."""
        try:
            result: Step = self._apply(self._node, lambda env: env.step(action))
        except _LostNodeError as failure:
            result = self._lost_transition(failure)
        else:
            if "grade" in result[4]:
                self._core.report_grade(result[4]["task_id"], result[4]["grade"])
        self._last = result[0], result[4]
        return result

    def snapshot(self) -> EnvSnapshot:
        """Returns a snapshot of the running episode, with the state of the local sampler."""
        remote_snapshot: EnvSnapshot = self._apply(self._node, snapshot)
        return replace(remote_snapshot, **sequence_of(self._core))

    def get_wrapper_attr(self, name: str) -> Any:
        """Returns a function that calls a method or reads an attribute on the node.

        Before the first reset, returns the attribute of the local env.
        """
        if self._node is None:
            return self.env.get_wrapper_attr(name)
        return lambda *args, **kwargs: self._apply(self._node, partial(_call, name, args, kwargs))

    def set_wrapper_attr(self, name: str, value: Any, **_force: bool) -> bool:
        """Raises InvalidArgumentError, because the next episode can run on another node."""
        raise InvalidArgumentError(
            f"attributes of envs on other nodes cannot be set, got {name}={value!r:.80}; use "
            "arguments of the env, or a wrapper"
        )

    @property
    def is_running(self) -> bool:
        """Whether an episode is running; False if its node is lost."""
        return bool(self._try_apply(lambda env: env.unwrapped.is_running))

    def close(self) -> None:
        """Ends a running command and the episode; idempotent."""
        self._try_apply(lambda env: env.close())
        self.env.close()

    def _try_apply(self, function: Callable[[Any], Any]) -> Any:
        """Applies a function to the env on its node; returns None without a node or on failure."""
        if self._node is not None:
            with suppress(Exception):  # no episode remains on a lost node
                return self._apply(self._node, function)
        return None

    def _apply(self, node: Node | None, function: Callable[[Any], Any]) -> Any:
        """Applies a function to the env on a node; returns its result or raises its exception."""
        errors = self._nodes.ray.exceptions
        if node is None:
            raise EpisodeError("there is no episode; call reset first")
        try:
            return self._nodes.ray.get(node.actor.apply.remote(self.index, function))
        except errors.RayTaskError as failure:
            raise failure.cause from None
        except errors.RayError as failure:
            self._nodes.discard(node, failure)
            reason = str(failure).partition("\n")[0]
            raise _LostNodeError(f"the node of the episode was lost: {reason}") from None

    def _lost_transition(self, failure: Exception) -> Step:
        """Returns the transition of an episode whose node died, with the last observation."""
        observation, info = self._last
        return observation, 0.0, False, True, self._core.lost_info(info, failure)


class Worker:
    """The actor on a node, which plays episodes; it creates each env on first use.

    Args:
        pickled: The wrappers and arguments of the envs, by cloudpickle.
    """

    def __init__(self, pickled: bytes) -> None:
        self._pickled = pickled
        self._envs: dict[int, Env] = {}
        self._lock = Lock()  # calls for an env can overlap

    def apply(self, index: int, function: Callable[[Any], Any]) -> Any:
        """Applies a function to the env with this number, and returns its result."""
        with self._lock:
            if index not in self._envs:
                from ray import cloudpickle

                wrappers, env_kwargs = cloudpickle.loads(self._pickled)
                (self._envs[index],) = make_envs(1, wrappers, env_kwargs)
            env = self._envs[index]
        return function(env)


class _LostNodeError(SandboxError):
    """The node of an episode, or the actor on it, died."""


def _call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], env: Env) -> Any:
    value = env.get_wrapper_attr(name)
    return value(*args, **kwargs) if callable(value) else value
