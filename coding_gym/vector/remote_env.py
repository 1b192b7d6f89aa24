"""One env of a `RayVectorEnv`: its episodes run on nodes of the cluster, its sampler runs here."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from threading import Lock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space, create_empty_array, iterate

from coding_gym.envs.snapshot import EnvSnapshot, seeded_copy, snapshot
from coding_gym.errors import EpisodeError, SandboxError, SandboxUnavailableError
from coding_gym.task import Task
from coding_gym.trajectory import StopReason
from coding_gym.vector.ray_nodes import MAX_LOSSES, Node, RayNodes
from coding_gym.vector.sub_envs import Env, make_envs

if TYPE_CHECKING:
    from coding_gym.envs import CodingRepairEnv

Step = tuple[Any, float, bool, bool, dict[str, Any]]


class RemoteEnv(gym.Env[Any, Any]):
    """An env whose episodes run on nodes of a cluster, each on the node that suits its task.

    Calls block, as those of other envs do. If the node of a running episode dies, the next result
    truncates the episode, with ``mask_sample`` True in its info; a reset goes to another node.

    Args:
        index: The number of the env, which names it on the nodes.
        env: A local env, wrapped alike. It has the spaces and the sampler, and is never reset.
        nodes: The cluster, with a `Worker` on each node.
    """

    def __init__(self, index: int, env: Env, nodes: RayNodes) -> None:
        self.index, self.env, self._nodes = index, env, nodes
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.metadata, self.spec, self.render_mode = env.metadata, env.spec, env.render_mode
        self._core = cast("CodingRepairEnv", env.unwrapped)
        self._node: Node | None = None
        self._closing: Any = None  # the end of an episode on the node before
        self._info: dict[str, Any] = {}
        self._attributes: dict[str, Any] = {}  # set by the caller, for the envs on all nodes
        self._is_closed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode on the node that suits its task; see `CodingRepairEnv.reset`."""
        chosen = self._core.choose(seed=seed, options=options)
        if isinstance(chosen, EnvSnapshot):
            task, options = chosen.episode.task, {"snapshot": _without_sampler(chosen)}
        else:
            task = chosen
            if "task" not in (options or {}):
                options = {"task_id": task.task_id}
        num_lost = 0
        while True:
            node = self._move(task)
            try:
                observation, self._info = self._ask("reset", self._attributes, seed, options)
            except SandboxUnavailableError as failure:
                self._nodes.discard(node, failure, is_unusable=True)
            except _LostNodeError:
                num_lost += 1
                if num_lost == MAX_LOSSES:
                    raise
            else:
                return observation, self._info

    def step(self, action: Any) -> Step:
        """Plays one action; see the class for a node that dies."""
        try:
            result: Step = self._ask("step", action)
        except _LostNodeError as failure:
            return self._lost(failure)
        self._info = result[4]
        if "grade" in self._info:
            self._core.record(self._info["task_id"], self._info["grade"])
        return result

    @property
    def unwrapped(self) -> Any:
        """What a `Slot` reads of the innermost env: whether the episode ended, and its `close`."""
        return SimpleNamespace(close=partial(self._end, "stop"), episode=_Ended(self))

    def snapshot(self) -> EnvSnapshot:
        """Returns a snapshot of the running episode, with the state of sampler and generators."""
        taken: EnvSnapshot = self._ask("snapshot")
        return replace(
            taken,
            config=replace(taken.config, tasks=self._core.config.tasks),
            sampler=self._core.sampler.copy(),
            seed=self._core.np_random_seed,
            np_random=deepcopy(self._core.np_random),
            action_space=seeded_copy(self.action_space),
        )

    def get_wrapper_attr(self, name: str) -> Callable[..., Any]:
        """Returns a function that calls a method, or reads an attribute, on the node."""
        return partial(self._ask, "call", name)

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Sets an attribute of the env, on other nodes from the next reset there on."""
        is_set: bool = self._ask("set", name, value, force)
        self._attributes[name] = value
        return is_set

    def close(self) -> None:
        """Ends the episode; idempotent."""
        self._end("close")
        self.env.close()

    def _move(self, task: Task) -> Node:
        """Chooses the node of the next episode, and ends one that runs on another node."""
        if self._closing is not None:  # a late end would be that of the next episode there
            with suppress(Exception):  # its node is lost
                self._nodes.ray.get(self._closing)
        self._closing = None
        previous, self._node = self._node, None
        self._node = node = self._nodes.place(task, previous=previous)
        if previous is not None and previous is not node:
            self._closing = previous.actor.ask.remote(self.index, "close")
        return node

    def _end(self, method: str) -> None:
        self._is_closed = True
        if self._node is not None:
            with suppress(Exception):  # the node is lost, and the episode with it
                self._ask(method)

    def _ask(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of a method of the worker, which raises what the env raises."""
        if self._node is None:
            self._node = self._nodes.place()
        node, errors = self._node, self._nodes.ray.exceptions
        reply = node.actor.ask.remote(self.index, method, *args, **kwargs)
        try:
            return self._nodes.ray.get(reply)
        except errors.RayTaskError as failure:
            raise failure.cause from None
        except errors.RayError as failure:
            if self._is_closed:
                raise EpisodeError("this vector env is closed") from None
            self._nodes.discard(node, failure)
            reason = next(iter(str(failure).splitlines()), "")
            raise _LostNodeError(f"the node of the episode was lost: {reason}") from None

    def _lost(self, failure: Exception) -> Step:
        """Returns the end of an episode whose node died."""
        space = self.observation_space
        empty: Any = create_empty_array(space, n=1, fn=np.zeros)
        (observation,) = iterate(batch_space(space, 1), empty)
        ended = {
            "text": "",
            "observation_cut": False,
            "messages": [],
            "turn": self._info["turn"] + 1,
            "stop_reason": str(StopReason.SANDBOX_ERROR),
            "error": str(failure),
            "mask_sample": True,
            "reward_parts": {"resolved": 0.0},
            "resolved": False,
            "grade": None,
            "patch": "",
        }
        self._info = {**self._info, **ended}
        return observation, 0.0, False, True, self._info


class Worker:
    """The actor of a node: the envs whose episodes are placed there, each made on first use.

    Args:
        pickled: The wrappers and arguments of the envs, by cloudpickle.
    """

    def __init__(self, pickled: bytes) -> None:
        self._pickled = pickled
        self._envs: dict[int, Env] = {}
        self._lock = Lock()  # first calls of an env may overlap

    def ask(self, index: int, method: str, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of one of the methods below for an env.

        Args:
            index: Its number.
            method: The method.
            *args: Its arguments behind the env.
            **kwargs: Its keyword arguments.
        """
        with self._lock:
            if index not in self._envs:
                from ray import cloudpickle

                wrappers, env_kwargs = cloudpickle.loads(self._pickled)
                (self._envs[index],) = make_envs(1, wrappers, env_kwargs)
            env = self._envs[index]
        return getattr(self, method)(env, *args, **kwargs)

    def reset(
        self,
        env: Env,
        attributes: Mapping[str, Any],
        seed: int | None,
        options: dict[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode, with attributes that were set here or on another node."""
        for name, value in attributes.items():
            env.set_wrapper_attr(name, value)
        return env.reset(seed=seed, options=options)

    def step(self, env: Env, action: Any) -> Step:
        """Plays one action."""
        observation, reward, terminated, truncated, info = env.step(action)
        return observation, float(reward), terminated, truncated, info

    def snapshot(self, env: Env) -> EnvSnapshot:
        """Returns a snapshot without the sampler, which is the driver's."""
        return _without_sampler(snapshot(env))

    def call(self, env: Env, name: str, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of a method, or the value of an attribute."""
        value = env.get_wrapper_attr(name)
        return value(*args, **kwargs) if callable(value) else value

    def set(self, env: Env, name: str, value: Any, force: bool) -> bool:
        """Sets an attribute."""
        return env.set_wrapper_attr(name, value, force=force)

    def ended(self, env: Env) -> bool:
        """Returns whether the episode is over."""
        return cast("CodingRepairEnv", env.unwrapped).episode.ended

    def stop(self, env: Env) -> None:
        """Ends the running command."""
        env.unwrapped.close()

    def close(self, env: Env) -> None:
        """Closes the env with its wrappers."""
        env.close()


class _LostNodeError(SandboxError):
    """The node of an episode, or the actor on it, died."""


class _Ended:
    """Whether the episode of a remote env has ended."""

    def __init__(self, env: RemoteEnv) -> None:
        self._env = env

    @property
    def ended(self) -> bool:
        try:
            return bool(self._env._ask("ended"))
        except SandboxError:  # the next action finds the node lost
            return False


def _without_sampler(snapshot: EnvSnapshot) -> EnvSnapshot:
    """Returns a snapshot that can be pickled and is small: samplers hold locks and all tasks."""
    return replace(snapshot, sampler=None, config=replace(snapshot.config, tasks=()))
