"""Stable-Baselines3: the vector env as a ``VecEnv`` of that library.

Needs the extra ``sb3``.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import missing_extra
from coding_gym.vector import CodingRepairVectorEnv, make_vec
from coding_gym.vector.batching import stack
from coding_gym.vector.sub_envs import WrapperEntry

try:
    from stable_baselines3.common.env_util import is_wrapped
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise missing_extra("Stable-Baselines3", "sb3") from error

Observations = dict[str, NDArray[Any]]
Indices = int | Iterable[int] | None


def make_vec_env(
    num_envs: int = 1,
    *,
    wrappers: Sequence[WrapperEntry] = (),
    **env_kwargs: Any,
) -> "CodingRepairVecEnv":
    """Returns ``CodingRepair-v0`` as a ``VecEnv`` of Stable-Baselines3.

    The actions of its algorithms are numbers, so one of the wrappers must be `MenuActions`. For
    statistics, wrap the result in `stable_baselines3.common.vec_env.VecMonitor`.

    Args:
        num_envs: The number of envs.
        wrappers: As for `coding_gym.vector.make_vec`, innermost first:
            ``[{"name": "MenuActions", "kwargs": {"num_candidates": 48}}]``.
        **env_kwargs: Further arguments of `CodingRepairVectorEnv` and `CodingRepairEnv`.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument cannot be used.
    """
    return CodingRepairVecEnv(make_vec(num_envs, wrappers=wrappers, **env_kwargs))


class CodingRepairVecEnv(VecEnv):
    """A `CodingRepairVectorEnv` with the interface of Stable-Baselines3.

    The step that ends an episode also starts the next one, as that library requires; the info then
    has ``terminal_observation``. An algorithm adds the value of this observation to the return if
    ``TimeLimit.truncated`` is True. This is the case only after an infrastructure failure
    (``info["mask_sample"]``), because the policy did not cause its reward of 0. If a limit ends an
    episode, the patch is graded, so the return is complete.

    Args:
        env: The vector env; `close` closes it too.

    Raises:
        InvalidArgumentError: The actions of the env are text.
    """

    def __init__(self, env: CodingRepairVectorEnv) -> None:
        action_space = env.single_action_space
        if isinstance(action_space, gym.spaces.Text):
            env.close()
            raise InvalidArgumentError(
                "Stable-Baselines3 needs numeric actions, got text; pass "
                "wrappers=[{'name': 'MenuActions'}]"
            )
        self.env = env
        # The vector env ignores the action after the end of an episode.
        self._begin_next = np.zeros((1, *(action_space.shape or ())), action_space.dtype)
        super().__init__(env.num_envs, env.single_observation_space, action_space)

    def reset(self) -> Observations:
        """Starts new episodes in all envs, with the values of `seed` and `set_options`.

        Returns:
            Arrays of shape (num_envs, ...) by key; the infos are in ``reset_infos``.

        Raises:
            InvalidArgumentError: The envs have different options.
        """
        options = self._options[0]
        if any(other != options for other in self._options):
            raise InvalidArgumentError(
                f"options must be the same for all envs, got {self._options!r}; use seeds to "
                "choose the tasks of individual envs"
            )
        observations, _ = self.env.reset(seed=self._seeds, options=options or None)
        self.reset_infos = [transition.info for transition in self.env.latest]
        self._reset_seeds()
        self._reset_options()
        return dict(observations)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Starts one action in each env."""
        self.env.send(actions)

    def step_wait(self) -> tuple[Observations, NDArray[Any], NDArray[Any], list[dict[str, Any]]]:
        """Waits for the actions, and after the end of an episode for the start of the next one.

        Returns:
            Observations, arrays of shape (num_envs, ...) by key; rewards, float32 (num_envs,);
            whether episodes ended, bool (num_envs,); infos, one for each env.
        """
        rewards = np.zeros(self.num_envs, np.float32)
        dones = np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        num_awaited = self.num_envs
        while num_awaited:
            for index in self.env.recv()[4]["env_id"]:
                latest = self.env.latest[index]
                if dones[index]:  # the second result of the env: the start of the next episode
                    self.reset_infos[index] = latest.info
                    num_awaited -= 1
                    continue
                is_masked = latest.truncated and latest.info["mask_sample"]
                rewards[index] = latest.reward
                infos[index] = {**latest.info, "TimeLimit.truncated": is_masked}
                if latest.terminated or latest.truncated:
                    dones[index] = True
                    infos[index]["terminal_observation"] = latest.observation
                    self.env.send(self._begin_next, [index])
                else:
                    num_awaited -= 1
        observations = [transition.observation for transition in self.env.latest]
        return dict(stack(self.observation_space, observations)), rewards, dones, infos

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Returns an attribute of some envs, all by default; wrappers are searched first."""
        return [env.get_wrapper_attr(attr_name) for env in self._chosen(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Sets an attribute of some envs, all by default, in the wrapper or env that has it."""
        for env in self._chosen(indices):
            env.set_wrapper_attr(attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Returns the results of a method, such as ``action_masks``, of some envs; default: all."""
        return [
            env.get_wrapper_attr(method_name)(*method_args, **method_kwargs)
            for env in self._chosen(indices)
        ]

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Indices = None
    ) -> list[bool]:
        """Returns for some envs, all by default, whether they have a wrapper of this class."""
        return [is_wrapped(env, wrapper_class) for env in self._chosen(indices)]

    def close(self) -> None:
        """Ends all episodes; idempotent."""
        self.env.close()

    def _chosen(self, indices: Indices) -> list[gym.Env[Any, Any]]:
        return [self.env.envs[index] for index in self._get_indices(indices)]
