"""RLlib, new API stack: the native vector env under a name that every Ray process knows."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import missing_extra
from coding_gym.vector import make_vec


class GradedReturns(gym.vector.VectorWrapper):
    """Marks complete returns as terminated, so that PPO does not bootstrap them.

    Every episode is graded in the step that ends it, a limit included, so nothing is left to
    estimate: `truncated` becomes `terminated`, and PPO does not bootstrap. Where
    ``info["mask_sample"]`` marks an infrastructure failure, there is no reward: the slot stays
    truncated, and PPO puts the value function's estimate in place of the missing return.

    Args:
        env: A vector env of coding_gym.
    """

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets every slot.

        Args:
            seed: RLlib seeds its runners one apart, and a vector env its slots one apart; one
                integer is therefore spread, so that no two slots play the same sequence of tasks.
            options: As for the wrapped env.
        """
        if isinstance(seed, int | np.integer):
            seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps every slot; see the class for what becomes of `truncated`, bool (num_envs,)."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        masked = np.asarray(infos.get("mask_sample", np.zeros(self.num_envs)), dtype=np.bool_)
        return observations, rewards, terminated | (truncated & ~masked), truncated & masked, infos


def make_vector_env(config: Mapping[str, Any]) -> gym.vector.VectorEnv[Any, Any, Any]:
    """Returns the vector env that an EnvRunner asks for.

    Args:
        config: ``env_config``, whose keys are the keyword arguments of
            `coding_gym.vector.make_vec`, with the ``num_envs`` that RLlib sets to its
            ``num_envs_per_env_runner``.

    Raises:
        InvalidArgumentError: RLlib wants single environments; the message says how to change it.
    """
    # RLlib makes a plain dict where it adds num_envs; a user's own comes in an EnvContext.
    if "num_envs" not in config or hasattr(config, "worker_index"):
        raise InvalidArgumentError(
            "RLlib asked for a single environment; this one comes as a vector: "
            "config.env_runners(gym_env_vectorize_mode='vector_entry_point')"
        )
    return GradedReturns(make_vec(**config))


def register(name: str = "CodingRepair") -> str:
    """Registers the environment with Ray, for `AlgorithmConfig.environment`.

    The registration reaches every process of the Ray job, remote EnvRunners included, whether Ray
    is started before or after.

    Args:
        name: The name to register under.

    Returns:
        The name.

    Raises:
        MissingDependencyError: RLlib is not installed.
    """
    try:
        from ray.tune.registry import register_env
    except ImportError as error:
        raise missing_extra("RLlib", "rllib") from error
    register_env(name, make_vector_env)
    return name
