"""The network for RLlib's PPO on `MenuActions`. Importing this needs the ``rllib`` extra."""

from typing import Any

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
_FORBIDDEN = -1e9  # its softmax is exactly 0 in float32, and its gradient and entropy are finite


def _mlp(num_inputs: int, num_hidden: int, num_outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(num_inputs, num_hidden),
        nn.ReLU(),
        nn.Linear(num_hidden, num_outputs),
    )


class MenuModule(TorchRLModule, ValueFunctionAPI):
    """Scores the menu of `MenuActions`: one network for all candidates, forbidden actions never.

    Each candidate k is encoded from its own features and the state of the menu, by weights that all
    k share: what is learnt about slot 7 of one task holds for every slot of every task. The mean
    and the maximum over the candidates, with the menu, give the state, from which come the value
    and the logits of the other actions; the logit of "try k" comes from candidate k and the state.

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
                f"MenuModule needs the observations of MenuActions, got none of {missing}; "
                "put {'name': 'MenuActions', 'kwargs': {}} into env_config['wrappers']"
            )
        num_candidates, num_features = spaces["candidates"].shape
        (num_menu,) = spaces["menu"].shape
        size = int((self.model_config or {}).get("hidden_size", 64))
        self.candidate_net = _mlp(num_features + num_menu, size, size)
        self.state_net = _mlp(num_menu + 2 * size, size, size)
        self.other_head = nn.Linear(size, int(self.action_space.n) - num_candidates)
        self.try_head = _mlp(2 * size, size, 1)
        self.value_head = nn.Linear(size, 1)
        for layer in (self.other_head, self.try_head[-1]):  # at first all allowed are about equal
            nn.init.orthogonal_(layer.weight, gain=0.01)
            nn.init.zeros_(layer.bias)

    def _encode(self, observation: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns candidates, float (B, K, size), 0 where there is none, and state (B, size)."""
        features, menu = observation["candidates"].float(), observation["menu"].float()
        exists = (features != 0).any(dim=-1, keepdim=True)
        beside = menu.unsqueeze(1).expand(-1, features.shape[1], -1)
        encoded = torch.relu(self.candidate_net(torch.cat([features, beside], dim=-1))) * exists
        mean = encoded.sum(dim=1) / exists.sum(dim=1).clamp(min=1)
        state = self.state_net(torch.cat([menu, mean, encoded.amax(dim=1)], dim=-1))
        return encoded, torch.relu(state)

    def _logits(
        self, encoded: torch.Tensor, state: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        beside = state.unsqueeze(1).expand(-1, encoded.shape[1], -1)
        tries = self.try_head(torch.cat([encoded, beside], dim=-1)).squeeze(-1)
        logits = torch.cat([self.other_head(state), tries], dim=-1)
        return logits.masked_fill(mask == 0, _FORBIDDEN)

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        observation = batch[Columns.OBS]
        encoded, state = self._encode(observation)
        logits = self._logits(encoded, state, observation["action_mask"])
        return {Columns.ACTION_DIST_INPUTS: logits}

    def _forward_train(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        observation = batch[Columns.OBS]
        encoded, state = self._encode(observation)
        logits = self._logits(encoded, state, observation["action_mask"])
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: state}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        """Returns the value of each state, float (B,); ``embeddings`` saves encoding it again."""
        state = self._encode(batch[Columns.OBS])[1] if embeddings is None else embeddings
        return self.value_head(state).squeeze(-1)
