"""The Gymnasium environment and its registration, without slow imports."""

from gymnasium.envs.registration import register, registry

ENV_ID = "CodingRepair-v0"


def register_envs() -> None:
    """Registers ``CodingRepair-v0``; a second call changes nothing."""
    if ENV_ID not in registry:
        register(
            id=ENV_ID,
            entry_point="coding_gym.envs.coding_repair:CodingRepairEnv",
            vector_entry_point="coding_gym.vector.vector_env:CodingRepairVectorEnv",
            # Deterministic, except for commands of the policy that read the clock or race in
            # threads.
            nondeterministic=False,
        )
