"""Stable-Baselines3: the native vector env as one of its own ``VecEnv``.

Needs the extra ``sb3``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from coding_gym.arguments import at_least
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import missing_extra
from coding_gym.vector import CodingRepairVectorEnv, make_vec
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
    seed: int | None = None,
    **env_kwargs: Any,
) -> "CodingRepairVecEnv":
    """Returns ``CodingRepair-v0`` as Stable-Baselines3 takes it.

    Its algorithms choose among numbers, so one of the wrappers must be `MenuActions`. Put
    `stable_baselines3.common.vec_env.VecMonitor` around it for statistics.

    Args:
        num_envs: How many episodes at once.
        wrappers: As for `coding_gym.vector.make_vec`, innermost first:
            ``[{"name": "MenuActions", "kwargs": {"num_candidates": 48}}]``.
        seed: Seeds the choice of tasks at the first `reset`; algorithms with a seed set their own.
        **env_kwargs: Further arguments of `CodingRepairVectorEnv` and `CodingRepairEnv`.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument cannot be used.
    """
    if seed is not None:
        at_least(0, "seed", seed)
    env = CodingRepairVecEnv(make_vec(num_envs, wrappers=wrappers, **env_kwargs))
    if seed is not None:
        env.seed(seed)
    return env


class CodingRepairVecEnv(VecEnv):
    """A `CodingRepairVectorEnv` behind the interface of Stable-Baselines3.

    An episode that ends is followed by the next one in the same step, as that library has it; the
    info then holds ``terminal_observation``. ``TimeLimit.truncated`` asks an algorithm to add the
    value of that observation to the return. A limit does not ask for it, since the patch is graded
    and the return complete; only an infrastructure failure does (``info["mask_sample"]``), since
    its reward of 0 is no result of the policy.

    Args:
        env: The vector env; `close` closes it too.

    Raises:
        InvalidArgumentError: Its actions are text.
    """

    def __init__(self, env: CodingRepairVectorEnv) -> None:
        action_space = env.single_action_space
        if isinstance(action_space, gym.spaces.Text):
            env.close()
            raise InvalidArgumentError(
                "Stable-Baselines3 cannot choose texts; give it numbers to choose from: "
                "wrappers=[{'name': 'MenuActions'}]"
            )
        self.env = env
        # What is sent after an episode's end is ignored, whatever it is.
        self._begin_next = np.zeros((1, *(action_space.shape or ())), action_space.dtype)
        super().__init__(env.num_envs, env.single_observation_space, action_space)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.num_envs} of {self.env.envs[0]})"

    def reset(self) -> Observations:
        """Begins new episodes in all envs, with the seeds and options that were set before.

        Returns:
            Arrays of shape (num_envs, ...) by key; the infos are in ``reset_infos``.

        Raises:
            InvalidArgumentError: `set_options` was given different options for different envs.
        """
        options = self._options[0]
        if any(other != options for other in self._options):
            raise InvalidArgumentError(
                f"options must be the same for all envs, got {self._options!r}; choose tasks of "
                "single envs by seed"
            )
        observations, infos = self.env.reset(seed=self._seeds, options=options or None)
        self.reset_infos = split_infos(infos, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        return dict(observations)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Begins one action in each env."""
        self.env.send(actions)

    def step_wait(self) -> tuple[Observations, NDArray[Any], NDArray[Any], list[dict[str, Any]]]:
        """Waits for the actions, and for the next episodes where they ended one.

        Returns:
            Observations, arrays of shape (num_envs, ...) by key; rewards, float32 (num_envs,);
            whether episodes ended, bool (num_envs,); infos, one for each env.
        """
        latest: list[Observations] = [{} for _ in range(self.num_envs)]
        rewards = np.zeros(self.num_envs, np.float32)
        dones = np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        num_awaited = self.num_envs
        while num_awaited:
            batch, batch_rewards, terminated, truncated, merged = self.env.recv()
            for place, info in enumerate(split_infos(merged, len(batch_rewards))):
                index = info.pop("env_id")
                latest[index] = {key: values[place] for key, values in batch.items()}
                if dones[index]:  # its second result: the next episode has begun
                    self.reset_infos[index] = info
                    num_awaited -= 1
                    continue
                rewards[index], infos[index] = batch_rewards[place], info
                info["TimeLimit.truncated"] = bool(truncated[place] and info["mask_sample"])
                if terminated[place] or truncated[place]:
                    dones[index] = True
                    info["terminal_observation"] = latest[index]
                    self.env.send(self._begin_next, [index])
                else:
                    num_awaited -= 1
        observations = {key: np.stack([o[key] for o in latest]) for key in latest[0]}
        return observations, rewards, dones, infos

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Returns an attribute of some envs, all by default; wrappers come first."""
        return [env.get_wrapper_attr(attr_name) for env in self._chosen(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Sets an attribute of some envs, all by default, where it is: in a wrapper or the env."""
        for env in self._chosen(indices):
            env.set_wrapper_attr(attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Returns what a method gives in some envs, all by default; such as ``action_masks``."""
        return [
            env.get_wrapper_attr(method_name)(*method_args, **method_kwargs)
            for env in self._chosen(indices)
        ]

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Indices = None
    ) -> list[bool]:
        """Returns whether each of some envs, all by default, is wrapped by that class."""
        return [is_wrapped(env, wrapper_class) for env in self._chosen(indices)]

    def close(self) -> None:
        """Ends all episodes; idempotent."""
        self.env.close()

    def _chosen(self, indices: Indices) -> list[gym.Env[Any, Any]]:
        return [self.env.envs[index] for index in self._get_indices(indices)]


def split_infos(merged: Mapping[str, Any], num_envs: int) -> list[dict[str, Any]]:
    """Returns the info of each env, from infos as a vector env merges them.

    Args:
        merged: Arrays of length ``num_envs`` by key, or again such mappings, each with a mask of
            who has it under ``_key``.
        num_envs: How many infos were merged.
    """
    infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
    for key, values in merged.items():
        mask = merged.get(f"_{key}")
        if mask is None:  # it is the mask of another key
            continue
        parts = split_infos(values, num_envs) if isinstance(values, Mapping) else values
        for index in np.flatnonzero(mask):
            part = parts[index]
            infos[index][key] = part.item() if isinstance(part, np.generic) else part
    return infos
