"""The class of ``CodingRepair-v0``, imported on first use, and its registration."""

from typing import TYPE_CHECKING, Any

from gymnasium.envs.registration import register, registry

if TYPE_CHECKING:
    from coding_gym.envs.coding_repair import CodingRepairEnv

__all__ = ["CodingRepairEnv"]

ENV_ID = "CodingRepair-v0"


def register_envs() -> None:
    """Registers ``CodingRepair-v0``; a second call changes nothing."""
    if ENV_ID not in registry:
        register(
            id=ENV_ID,
            entry_point="coding_gym.envs.coding_repair:CodingRepairEnv",
            vector_entry_point="coding_gym.vector.vector_env:CodingRepairVectorEnv",
            # Results differ only if the policy's commands read the clock or race in threads.
            nondeterministic=False,
        )


def __getattr__(name: str) -> Any:
    if name == "CodingRepairEnv":  # imported on first use, because it is slow to import
        from coding_gym.envs.coding_repair import CodingRepairEnv

        return CodingRepairEnv
    raise AttributeError(f"module 'coding_gym.envs' has no attribute {name!r}")
