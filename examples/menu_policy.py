"""Policies for `MenuActions`: `MenuPolicy` for MaskablePPO of sb3-contrib, `MenuModule` for RLlib.

Copy this file into the folder of your script. It needs torch, and the extra ``sb3`` or ``rllib``.
The class for a trainer that is not installed cannot be used.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from gymnasium import spaces
from torch import nn

try:
    from sb3_contrib.common.maskable.policies import MaskableMultiInputActorCriticPolicy
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
except ImportError:  # only RLlib is installed
    MaskableMultiInputActorCriticPolicy = BaseFeaturesExtractor = nn.Module
try:
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
    from ray.rllib.core.rl_module.torch import TorchRLModule
except ImportError:  # only Stable-Baselines3 is installed
    TorchRLModule, ValueFunctionAPI = nn.Module, object

MENU_KEYS = ("action_mask", "candidates", "menu")
"""The keys of the observations of `MenuActions` that the policies read."""

MASKED = -1e8
"""The logit of an unavailable action: its probability is exactly 0 in float32, and neither entropy
nor gradient is NaN."""

_TINY = 1e-8


class MenuNetwork(nn.Module):
    """Scores every candidate with the same weights, and the other actions from the whole menu.

    All slots of all programs share these weights. Each fixed action is a kind of action; one more
    kind is "try a candidate". The probability of a candidate is the probability of this kind times
    the candidate's probability among the available candidates. So an untrained policy tries
    candidates about as often as it submits, for any number of candidates.

    Shapes: B observations, K candidates with F features, R menu values, H = ``hidden_dim``; all
    tensors are float32.

    Args:
        num_features: F.
        menu_dim: R.
        num_fixed: Number of actions that try no candidate; they precede the candidates.
        hidden_dim: H, the width of the layers.
    """

    def __init__(self, num_features: int, menu_dim: int, num_fixed: int, hidden_dim: int) -> None:
        super().__init__()
        self._num_fixed = num_fixed
        self.actor = _MenuReader(num_features, menu_dim, hidden_dim)
        self.critic = _MenuReader(num_features, menu_dim, hidden_dim)
        self.kind = nn.Linear(hidden_dim, num_fixed + 1)
        self.score = nn.Sequential(
            nn.Linear(2 * hidden_dim, hidden_dim), nn.Tanh(), nn.Linear(hidden_dim, 1)
        )
        for layer in (self.kind, self.score[-1]):  # near-uniform probabilities at the start
            nn.init.orthogonal_(layer.weight, gain=0.01)
            nn.init.zeros_(layer.bias)

    def logits(
        self, candidates: torch.Tensor, menu: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Returns the logits of all actions, (B, num_fixed + K).

        Args:
            candidates: (B, K, F); zeros in unused rows.
            menu: (B, R).
            mask: (B, num_fixed + K), above 0 where an action is available. Only candidates are
                masked here: a trainer masks the whole distribution.
        """
        menu_code, codes = self.actor(candidates, menu)
        pairs = torch.cat([codes, menu_code.unsqueeze(1).expand_as(codes)], dim=2)
        scores = self.score(pairs).squeeze(2)
        is_allowed = mask[:, self._num_fixed :] > 0
        candidate_logits = scores.masked_fill(~is_allowed, MASKED).log_softmax(dim=1)
        kind_logits = self.kind(menu_code)
        return torch.cat([kind_logits[:, :-1], kind_logits[:, -1:] + candidate_logits], dim=1)

    def latent(self, candidates: torch.Tensor, menu: torch.Tensor) -> torch.Tensor:
        """Returns the features for the value estimate, (B, H); arguments as for `logits`."""
        return self.critic(candidates, menu)[0]


class _MenuReader(nn.Module):
    """Encodes each candidate, and the menu with the mean and the maximum of all candidates."""

    def __init__(self, num_features: int, menu_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.encode_candidate = nn.Sequential(nn.Linear(num_features, hidden_dim), nn.Tanh())
        self.encode_menu = nn.Sequential(
            nn.Linear(menu_dim + 2 * hidden_dim, hidden_dim),
            nn.Tanh(),
            nn.Linear(hidden_dim, hidden_dim),
            nn.Tanh(),
        )

    def forward(
        self, candidates: torch.Tensor, menu: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the encodings of the menu (B, H) and of each candidate (B, K, H)."""
        is_candidate = (candidates != 0).any(dim=2, keepdim=True)
        codes = self.encode_candidate(candidates) * is_candidate
        mean = codes.sum(1) / is_candidate.sum(1).clamp(min=1)
        return self.encode_menu(torch.cat([menu, mean, codes.amax(1)], dim=1)), codes


def _sizes(space: Any) -> list[int]:
    """Returns the size of the flattened observation at each of `MENU_KEYS`."""
    missing_keys = [key for key in MENU_KEYS if key not in getattr(space, "spaces", {})]
    if missing_keys:
        raise ValueError(
            f"the observation has no {', '.join(missing_keys)}; wrap the env in MenuActions"
        )
    return [spaces.flatdim(space[key]) for key in MENU_KEYS]


def _network(space: Any, num_actions: int, hidden_dim: int) -> MenuNetwork:
    *_, menu_dim = _sizes(space)
    num_candidates, num_features = space["candidates"].shape
    return MenuNetwork(num_features, menu_dim, num_actions - num_candidates, hidden_dim)


# Stable-Baselines3.


class _MenuFeatures(BaseFeaturesExtractor):
    """Concatenates the arrays of `MENU_KEYS` to vectors, (B, D); the text is not read."""

    def __init__(self, observation_space: spaces.Dict) -> None:
        super().__init__(observation_space, features_dim=sum(_sizes(observation_space)))

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.cat([observations[key].flatten(1).float() for key in MENU_KEYS], dim=1)


class _FlatMenuNetwork(nn.Module):
    """A `MenuNetwork` for the vectors of `_MenuFeatures`, with Stable-Baselines3's interface."""

    def __init__(self, space: Any, num_actions: int, hidden_dim: int) -> None:
        super().__init__()
        self.network = _network(space, num_actions, hidden_dim)
        self.latent_dim_pi, self.latent_dim_vf = num_actions, hidden_dim
        self._sizes, self._shape = _sizes(space), space["candidates"].shape

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns logits (B, num_actions) and the critic's latent (B, hidden_dim)."""
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        mask, candidates, menu = features.split(self._sizes, dim=1)
        return self.network.logits(candidates.unflatten(1, self._shape), menu, mask)

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        _, candidates, menu = features.split(self._sizes, dim=1)
        return self.network.latent(candidates.unflatten(1, self._shape), menu)


class MenuPolicy(MaskableMultiInputActorCriticPolicy):
    """A policy for `sb3_contrib.MaskablePPO`.

    Args:
        observation_space: The observation space of `MenuActions`.
        action_space: The action space of `MenuActions`.
        lr_schedule: Returns the learning rate for the remaining progress, from 1 to 0.
        hidden_dim: Width of the layers.
        **kwargs: As for `MaskableMultiInputActorCriticPolicy`.

    Raises:
        ValueError: The observation space is not that of `MenuActions`.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: "spaces.Discrete[Any]",
        lr_schedule: Callable[[float], float],
        *,
        hidden_dim: int = 64,
        **kwargs: Any,
    ) -> None:
        self._hidden_dim = hidden_dim
        kwargs |= {"features_extractor_class": _MenuFeatures, "net_arch": []}
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def evaluate_actions(
        self, obs: dict[str, Any], actions: Any, action_masks: Any = None
    ) -> tuple[Any, Any, Any]:
        """Returns values and log-probabilities of the actions, and entropies for the entropy bonus.

        The entropy is the sum of the entropy over the kinds of action and the entropy over the
        candidates, the latter scaled to 0 to 1. The entropy over all actions would favour "try a
        candidate", because most actions are candidates.
        """
        values, log_probs, _ = super().evaluate_actions(obs, actions, action_masks)
        probabilities = self.action_dist.distribution.probs
        num_candidates = self.observation_space["candidates"].shape[0]
        candidates = probabilities[:, -num_candidates:]
        sums = candidates.sum(1, keepdim=True)
        kinds = torch.cat([probabilities[:, :-num_candidates], sums], dim=1)
        max_entropy = math.log(max(2, num_candidates))
        candidate_entropy = _entropy(candidates / sums.clamp(min=_TINY)) / max_entropy
        return values, log_probs, _entropy(kinds) + candidate_entropy

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        """Makes the networks and the optimizer; the parent's constructor calls this method."""
        self.mlp_extractor = _FlatMenuNetwork(
            self.observation_space, int(self.action_space.n), self._hidden_dim
        )
        self.action_net = nn.Identity()  # the network already returns logits
        self.value_net = nn.Linear(self._hidden_dim, 1)
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "hidden_dim": self._hidden_dim}


def _entropy(probabilities: Any) -> Any:
    """Returns the entropy of each row, in nats."""
    return -(probabilities * probabilities.clamp(min=_TINY).log()).sum(dim=1)


# RLlib.


class MenuModule(TorchRLModule, ValueFunctionAPI):
    """A module for PPO of RLlib, new API stack, which never chooses an unavailable action.

    ``model_config["hidden_size"]`` is the width of the layers, by default 64.

    Raises:
        ValueError: The observation space is not that of `MenuActions`.
    """

    def setup(self) -> None:
        """Builds the layers from the spaces; RLlib calls it once."""
        size = (self.model_config or {}).get("hidden_size", 64)
        self.network = _network(self.observation_space, int(self.action_space.n), size)
        self.value_head = nn.Linear(size, 1)

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        inputs = batch[Columns.OBS]
        mask = inputs["action_mask"]
        logits = self.network.logits(inputs["candidates"].float(), inputs["menu"].float(), mask)
        return {Columns.ACTION_DIST_INPUTS: logits.masked_fill(mask == 0, MASKED)}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:  # noqa: ARG002 - actor and critic share nothing
        """Returns the value of each state, float32 (B,)."""
        inputs = batch[Columns.OBS]
        latent = self.network.latent(inputs["candidates"].float(), inputs["menu"].float())
        return self.value_head(latent).squeeze(-1)
