"""The Gymnasium environment."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coding_gym.envs.coding_repair import CodingRepairEnv

__all__ = ["CodingRepairEnv"]


def __getattr__(name: str) -> Any:
    if name == "CodingRepairEnv":  # on first use: importing the package registers, and no more
        from coding_gym.envs.coding_repair import CodingRepairEnv

        return CodingRepairEnv
    raise AttributeError(f"module 'coding_gym.envs' has no attribute {name!r}")
