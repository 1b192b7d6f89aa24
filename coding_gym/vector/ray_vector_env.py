"""Many episodes at once on the nodes of a Ray cluster."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import import_extra
from coding_gym.vector.ray_nodes import RayNodes
from coding_gym.vector.remote_env import RemoteEnv, Worker
from coding_gym.vector.sub_envs import Env, WrapperEntry, make_envs
from coding_gym.vector.vector_env import CodingRepairVectorEnv


class RayVectorEnv(CodingRepairVectorEnv):
    """N ``CodingRepair-v0`` envs whose episodes run on the nodes of a Ray cluster.

    Interface and results equal those of `CodingRepairVectorEnv`, including ``send`` and ``recv``.
    Each episode starts on the node with the fewest episodes per CPU, or on a node that has the
    environment or image of its task. The samplers run in this process, so equal seeds select equal
    tasks on any node. If a node dies, its running episodes are truncated with ``mask_sample`` True
    in their infos, and the next episodes start on other nodes.

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
        with ExitStack() as self._closing:  # closes the connection after a failure
            super().__init__(num_envs, env_wrappers=env_wrappers, **env_kwargs)
            self._closing = self._closing.pop_all()

    def close_extras(self, **kwargs: Any) -> None:
        """Ends all episodes, threads and actors."""
        try:
            super().close_extras(**kwargs)
        finally:
            self._closing.close()

    def _make_envs(
        self, num_envs: int, wrappers: Sequence[WrapperEntry], env_kwargs: Mapping[str, Any]
    ) -> list[Env]:
        ray = import_extra("ray", "ray")
        try:
            pickled = ray.cloudpickle.dumps((wrappers, dict(env_kwargs)))
        except TypeError as problem:
            raise InvalidArgumentError(
                f"env_wrappers must be picklable by cloudpickle: {problem}; use names of classes"
            ) from None
        # Two simultaneous calls per env, because `close` ends the command of a running `step`.
        nodes = RayNodes(self._address, Worker, (pickled,), 2 * num_envs)
        self._closing.callback(nodes.close)
        local_envs = make_envs(num_envs, wrappers, env_kwargs)
        return [RemoteEnv(index, env, nodes) for index, env in enumerate(local_envs)]
