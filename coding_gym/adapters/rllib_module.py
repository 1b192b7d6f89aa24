"""The network for RLlib's PPO on `MenuActions`. Importing this needs the ``rllib`` extra."""

from dataclasses import fields
from typing import Any

from coding_gym.arguments import at_least_one
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import missing_extra

try:
    import torch
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
    from ray.rllib.core.rl_module.torch import TorchRLModule
    from torch import nn

    from coding_gym.adapters.menu_network import MASKED, MENU_KEYS, MenuNetwork
except ImportError as error:
    raise missing_extra("RLlib", "rllib") from error

_WIDTH = "hidden_size"


class MenuModule(TorchRLModule, ValueFunctionAPI):
    """Plays the menu of `MenuActions` by a `MenuNetwork`; what makes no sense is never chosen.

    ``input_ids`` and ``attention_mask`` are ignored: the menu's features say what a choice among
    candidates needs, so ``max_obs_tokens`` may be small.

    Reads ``model_config["hidden_size"]``, 64 by default. RLlib's own keys may be there too, since
    it adds some itself; they change nothing.

    Raises:
        InvalidArgumentError: The observations are not those of `MenuActions`, or ``model_config``
            has a key that nobody knows.
    """

    def setup(self) -> None:
        """Builds the layers from the spaces; RLlib calls it once."""
        spaces = getattr(self.observation_space, "spaces", {})
        missing = [key for key in MENU_KEYS if key not in spaces]
        if missing:
            raise InvalidArgumentError(
                f"MenuModule reads {', '.join(MENU_KEYS)}; the observation has no "
                f"{', '.join(missing)}; put {{'name': 'MenuActions'}} into env_config['wrappers']"
            )
        size = _width(self.model_config or {})
        num_candidates, num_features = spaces["candidates"].shape
        (num_menu,) = spaces["menu"].shape
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


def _width(model_config: dict[str, Any]) -> int:
    """Returns the width of the layers."""
    known = {_WIDTH, *(field.name for field in fields(DefaultModelConfig))}
    if unknown := sorted(model_config.keys() - known):
        raise InvalidArgumentError(
            f"MenuModule reads model_config[{_WIDTH!r}], got {', '.join(map(repr, unknown))}"
        )
    return at_least_one(_WIDTH, model_config.get(_WIDTH, 64))


def _numbers(observation: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    return observation["candidates"].float(), observation["menu"].float()
