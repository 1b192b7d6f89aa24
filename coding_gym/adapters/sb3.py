"""Stable-Baselines3: its ``VecEnv`` around the vector env. Needs the extra ``sb3``."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import missing_extra
from coding_gym.vector import CodingRepairVectorEnv
from coding_gym.vector.sub_envs import WrapperEntry

try:
    from stable_baselines3.common.vec_env import DummyVecEnv
except ImportError as error:
    raise missing_extra("Stable-Baselines3", "sb3") from error

Observations = dict[str, NDArray[Any]]


class CodingRepairVecEnv(DummyVecEnv):
    """``CodingRepair-v0`` as a ``VecEnv`` of Stable-Baselines3; its envs run in parallel.

    The library's algorithms choose numbers, so ``wrappers`` must contain `MenuActions`. For
    statistics, wrap the env in `stable_baselines3.common.vec_env.VecMonitor`.

    The step that ends an episode also starts the next episode, as the library requires; the info
    then has ``terminal_observation``. An algorithm adds the value of this observation to the return
    if ``TimeLimit.truncated`` is True. This flag is True only after an infrastructure failure
    (``info["mask_sample"]``), because the policy did not cause the reward of 0. At a limit the
    patch is graded, so the return is complete.

    Args:
        num_envs: The number of envs.
        wrappers: ``env_wrappers`` of `CodingRepairVectorEnv`, innermost first:
            ``[{"name": "MenuActions", "kwargs": {"num_candidates": 48}}]``.
        **env_kwargs: Arguments of `CodingRepairEnv`.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument cannot be used, or the actions of the
            env are text.
    """

    def __init__(
        self, num_envs: int = 1, *, wrappers: Sequence[WrapperEntry] = (), **env_kwargs: Any
    ) -> None:
        self.env = CodingRepairVectorEnv(num_envs, env_wrappers=wrappers, **env_kwargs)
        if isinstance(self.env.single_action_space, gym.spaces.Text):
            self.env.close()
            raise InvalidArgumentError(
                "Stable-Baselines3 needs numeric actions, got text; pass "
                "wrappers=[{'name': 'MenuActions'}]"
            )
        # The library calls one function per env to create the env; each call returns the next env.
        super().__init__([partial(next, iter(self.env.envs))] * num_envs)

    def reset(self) -> Observations:
        """Starts new episodes in all envs, with the values of `seed` and `set_options`.

        Returns:
            Arrays of shape (num_envs, ...) by key; the infos are in ``reset_infos``.

        Raises:
            InvalidArgumentError: The envs have different options.
        """
        options = self._options[0]
        if any(env_options != options for env_options in self._options):
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
        """Waits for the actions, and starts the next episodes in envs whose episodes have ended.

        Returns:
            Observations, arrays of shape (num_envs, ...) by key; rewards, float32 (num_envs,);
            whether episodes ended, bool (num_envs,); infos, one for each env.
        """
        observations, rewards, terminated, truncated, _ = self.env.recv(self.num_envs)
        dones, infos = terminated | truncated, []
        for transition in self.env.latest:
            is_masked = transition.truncated and transition.info["mask_sample"]
            infos.append({**transition.info, "TimeLimit.truncated": is_masked})
        if dones.any():
            for index in np.flatnonzero(dones):
                infos[index]["terminal_observation"] = self.env.latest[index].observation
            observations, _ = self.env.reset(options={"reset_mask": dones})
            for index in np.flatnonzero(dones):
                self.reset_infos[index] = self.env.latest[index].info
        return dict(observations), rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        """Ends all episodes; idempotent."""
        self.env.close()
