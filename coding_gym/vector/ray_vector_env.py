"""Many episodes at once on the nodes of a Ray cluster."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import gymnasium as gym

from coding_gym.envs.snapshot import EnvSnapshot, sequence_of, snapshot
from coding_gym.errors import EpisodeError, InvalidArgumentError
from coding_gym.vector.ray_nodes import LostNodeError, Node, RayNodes
from coding_gym.vector.sub_envs import Env, WrapperEntry, make_envs
from coding_gym.vector.vector_env import CodingRepairVectorEnv

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
        nodes: The cluster, with envs as its objects.
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
        """Starts an episode on the node from `RayNodes.start`; see `CodingRepairEnv.reset`."""
        start = self._core.choose(seed=seed, options=options)
        if isinstance(start, EnvSnapshot):
            task, options = start.episode.task, {"snapshot": start}
        else:
            task = start
            if "task" not in (options or {}):
                options = {"task_id": task.task_id}
        if self._node is not None:
            self._try_call(lambda env: env.close())
            self._nodes.release(self._node)
            self._node = None
        self._node, self._last = self._nodes.start(
            task, self.index, lambda env: env.reset(seed=seed, options=options)
        )
        return self._last

    def step(self, action: Any) -> Step:
        """Plays one action; the class documents the result if the node dies."""
        try:
            result: Step = self._call(lambda env: env.step(action))
        except LostNodeError as failure:
            observation, info = self._last
            result = observation, 0.0, False, True, self._core.lost_info(info, failure)
        else:
            if "grade" in result[4]:
                self._core.report_grade(result[4]["task_id"], result[4]["grade"])
        self._last = result[0], result[4]
        return result

    def snapshot(self) -> EnvSnapshot:
        """Returns a snapshot of the running episode, with the state of the local sampler."""
        remote_snapshot: EnvSnapshot = self._call(snapshot)
        return replace(remote_snapshot, **sequence_of(self._core))

    def get_wrapper_attr(self, name: str) -> Any:
        """Returns a function that calls a method or reads an attribute on the node.

        Before the first reset, returns the attribute of the local env.
        """
        if self._node is None:
            return self.env.get_wrapper_attr(name)
        return lambda *args, **kwargs: self._call(partial(_call_attr, name, args, kwargs))

    def set_wrapper_attr(self, name: str, value: Any, **_force: bool) -> bool:
        """Raises InvalidArgumentError, because the next episode can run on another node."""
        raise InvalidArgumentError(
            f"attributes of envs on other nodes cannot be set, got {name}={value!r:.80}; use "
            "arguments of the env, or a wrapper"
        )

    @property
    def is_running(self) -> bool:
        """Whether an episode is running; False if its node is lost."""
        return bool(self._try_call(lambda env: env.unwrapped.is_running))

    def close(self) -> None:
        """Ends a running command and the episode; idempotent."""
        self._try_call(lambda env: env.close())
        self.env.close()

    def _try_call(self, function: Callable[[Any], Any]) -> Any:
        """Applies a function to the env on its node; returns None without a node or on failure."""
        with suppress(Exception):  # no episode remains on a lost node
            return self._call(function)
        return None

    def _call(self, function: Callable[[Any], Any]) -> Any:
        """Applies a function to the env on its node; returns its result or raises its exception."""
        if self._node is None:
            raise EpisodeError("there is no episode; call reset first")
        return self._nodes.call(self._node, self.index, function)


class RayVectorEnv(CodingRepairVectorEnv):
    """N ``CodingRepair-v0`` envs whose episodes run on the nodes of a Ray cluster.

    Interface and results equal those of `CodingRepairVectorEnv`, including ``send`` and ``recv``.
    Each episode starts on the node with the fewest episodes per CPU; nodes that already have the
    environment or image of its task are preferred. The samplers run in this process, so equal seeds
    select equal tasks on any node. If a node dies, its running episodes are truncated with
    ``mask_sample`` True in their infos, and the next episodes start on other nodes.

    Each node needs this package and the files of the tasks at the same paths, and builds the
    templates of its tasks.

    Args:
        num_envs: N, the number of envs.
        address: The cluster, as for ``ray.init``; an existing connection of this process is used.
        env_wrappers: As for `CodingRepairVectorEnv`. Callables must be picklable by cloudpickle.
        **env_kwargs: Arguments of `CodingRepairEnv`.

    Raises:
        MissingDependencyError: Ray is not installed.
        InvalidArgumentError, UnknownNameError: An argument cannot be used, or the cluster does not
            exist.
    """

    _snapshot_of = staticmethod(RemoteEnv.snapshot)

    def __init__(
        self,
        num_envs: int,
        *,
        address: str = "auto",
        env_wrappers: Sequence[WrapperEntry] = (),
        **env_kwargs: Any,
    ) -> None:
        self._address = address
        super().__init__(num_envs, env_wrappers=env_wrappers, **env_kwargs)

    def close_extras(self, **kwargs: Any) -> None:
        """Ends all episodes, threads and actors."""
        try:
            super().close_extras(**kwargs)
        finally:
            self._nodes.close()

    def _make_envs(
        self, num_envs: int, wrappers: Sequence[WrapperEntry], env_kwargs: Mapping[str, Any]
    ) -> list[Env]:
        local_envs = make_envs(num_envs, wrappers, env_kwargs)  # raises before the connection
        create = partial(_make_env, wrappers, dict(env_kwargs))
        # Two simultaneous calls per env, because `close` ends the command of a running `step`.
        self._nodes = RayNodes(self._address, create, 2 * num_envs)
        return [RemoteEnv(index, env, self._nodes) for index, env in enumerate(local_envs)]


def _make_env(wrappers: Sequence[WrapperEntry], env_kwargs: Mapping[str, Any]) -> Env:
    (env,) = make_envs(1, wrappers, env_kwargs)
    return env


def _call_attr(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], env: Env) -> Any:
    value = env.get_wrapper_attr(name)
    return value(*args, **kwargs) if callable(value) else value
