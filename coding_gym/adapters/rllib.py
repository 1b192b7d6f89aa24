"""RLlib, new API stack: registers the vector env under a name in every Ray process."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import import_extra
from coding_gym.vector import CodingRepairVectorEnv


class GradedReturns(gym.vector.VectorWrapper):
    """Marks every graded episode as terminated, so that PPO does not bootstrap the return.

    The step that ends an episode grades the patch, even at a limit, so the return is complete:
    `truncated` becomes `terminated`. After an infrastructure failure (``info["mask_sample"]``)
    there is no reward: the env stays truncated, and PPO replaces the missing return by the estimate
    of the value function.

    Args:
        env: A vector env of coding_gym.
    """

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets every env.

        Args:
            seed: An integer is hashed first. RLlib gives consecutive seeds to its runners, and a
                vector env gives consecutive seeds to its envs; without the hash, envs of different
                runners would play the same sequence of tasks.
            options: As for the wrapped env.
        """
        if isinstance(seed, int | np.integer):
            seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Plays one action in every env; the class documents the changed flags."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        mask = np.asarray(infos.get("mask_sample", np.zeros(self.num_envs)), dtype=np.bool_)
        return observations, rewards, terminated | (truncated & ~mask), truncated & mask, infos


def make_vector_env(config: Mapping[str, Any]) -> gym.vector.VectorEnv[Any, Any, Any]:
    """Returns the vector env of an EnvRunner.

    Args:
        config: ``env_config``: keyword arguments of `CodingRepairVectorEnv`. RLlib adds
            ``num_envs``, the value of ``num_envs_per_env_runner``.

    Raises:
        InvalidArgumentError: RLlib is configured for single environments; the message has the
            setting to change.
    """
    # RLlib adds num_envs to a plain dict; for single environments it passes an EnvContext.
    if "num_envs" not in config or hasattr(config, "worker_index"):
        raise InvalidArgumentError(
            "RLlib requested a single environment, but this is a vector environment; set "
            "config.env_runners(gym_env_vectorize_mode='vector_entry_point')"
        )
    return GradedReturns(CodingRepairVectorEnv(**config))


def register(name: str = "CodingRepair") -> str:
    """Registers the environment with Ray, for `AlgorithmConfig.environment`.

    The registration is valid in every process of the Ray job, including remote EnvRunners, even if
    Ray starts later.

    Args:
        name: The name of the environment.

    Returns:
        The name.

    Raises:
        MissingDependencyError: RLlib is not installed.
    """
    import_extra("ray.tune.registry", "rllib").register_env(name, make_vector_env)
    return name
