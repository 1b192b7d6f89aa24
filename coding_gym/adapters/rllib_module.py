"""The network for RLlib's PPO on `MenuActions`. Importing this needs the ``rllib`` extra."""

from typing import Any

from coding_gym.adapters.menu_network import MASKED, MenuNetwork
from coding_gym.errors import InvalidArgumentError, MissingDependencyError

try:
    import torch
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
    from ray.rllib.core.rl_module.torch import TorchRLModule
    from torch import nn
except ImportError as error:
    raise MissingDependencyError(
        "RLlib is not installed; run: pip install 'coding-gym[rllib]'"
    ) from error

_NEEDED = ("action_mask", "candidates", "menu")


class MenuModule(TorchRLModule, ValueFunctionAPI):
    """Plays the menu of `MenuActions` by a `MenuNetwork`; what makes no sense is never chosen.

    ``input_ids`` and ``attention_mask`` are ignored: the menu's features say what a choice among
    candidates needs, so ``max_obs_tokens`` may be small.

    Reads ``model_config["hidden_size"]``, 64 by default.

    Raises:
        InvalidArgumentError: The observations are not those of `MenuActions`.
    """

    def setup(self) -> None:
        """Builds the layers from the spaces; RLlib calls it once."""
        spaces = getattr(self.observation_space, "spaces", {})
        missing = [key for key in _NEEDED if key not in spaces]
        if missing:
            raise InvalidArgumentError(
                f"MenuModule reads {', '.join(_NEEDED)}; the observation has no "
                f"{', '.join(missing)}; put {{'name': 'MenuActions'}} into env_config['wrappers']"
            )
        num_candidates, num_features = spaces["candidates"].shape
        (num_menu,) = spaces["menu"].shape
        size = int((self.model_config or {}).get("hidden_size", 64))
        num_fixed = int(self.action_space.n) - num_candidates
        self.network = MenuNetwork(num_features, num_menu, num_fixed, size)
        self.value_head = nn.Linear(size, 1)

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        observation = batch[Columns.OBS]
        mask = observation["action_mask"]
        logits = self.network.logits(*_numbers(observation), mask)
        return {Columns.ACTION_DIST_INPUTS: logits.masked_fill(mask == 0, MASKED)}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:  # noqa: ARG002 - actor and critic share nothing
        """Returns the value of each state, float32 (B,)."""
        latent = self.network.latent(*_numbers(batch[Columns.OBS]))
        return self.value_head(latent).squeeze(-1)


def _numbers(observation: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    return observation["candidates"].float(), observation["menu"].float()
