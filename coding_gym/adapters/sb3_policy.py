"""Networks for Stable-Baselines3: text as an embedding, and a policy that reads a menu.

Needs the extra ``sb3``.
"""

import math
from collections.abc import Callable
from typing import Any, cast

from gymnasium import spaces

from coding_gym.adapters.menu_network import MENU_KEYS, MenuNetwork
from coding_gym.arguments import at_least_one
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import missing_extra

try:
    import torch
    from sb3_contrib.common.maskable.policies import MaskableMultiInputActorCriticPolicy
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from torch import nn
except ImportError as error:
    raise missing_extra("sb3-contrib", "sb3") from error

_TINY = 1e-8


class TokenEmbeddingExtractor(BaseFeaturesExtractor):
    """Turns an observation into one vector: the mean embedding of its tokens, then all else, flat.

    The stock extractor would take token ids for quantities.

    Args:
        observation_space: A `Dict` of boxes with ``input_ids`` and ``attention_mask``.
        embedding_dim: Numbers per token; 0 leaves the text out.

    Attributes:
        slices: Where the flattened values of each other key lie in the vector.

    Raises:
        InvalidArgumentError: There is no ``input_ids``, or ``embedding_dim`` is not of use.
    """

    def __init__(self, observation_space: spaces.Dict, embedding_dim: int = 16) -> None:
        if embedding_dim != 0:
            at_least_one("embedding_dim, if not 0,", embedding_dim)
        if "input_ids" not in observation_space.spaces:
            raise InvalidArgumentError(
                "TokenEmbeddingExtractor reads input_ids, got an observation of "
                f"{sorted(observation_space.spaces)}"
            )
        others = {
            key: space
            for key, space in observation_space.spaces.items()
            if key not in ("input_ids", "attention_mask")
        }
        self.slices: dict[str, slice] = {}
        end = embedding_dim
        for key, space in others.items():
            size = spaces.flatdim(space)
            self.slices[key] = slice(end, end + size)
            end += size
        super().__init__(observation_space, features_dim=end)
        self.embedding: nn.Embedding | None = None
        if embedding_dim:
            ids = cast("spaces.Box", observation_space["input_ids"])
            self.embedding = nn.Embedding(int(ids.high.max()) + 1, embedding_dim)

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        """Returns features, float32 (B, D), of observations whose arrays are (B, ...)."""
        parts = [observations[key].flatten(1).float() for key in self.slices]
        if self.embedding is not None:
            parts.insert(0, self._mean_embedding(observations, self.embedding))
        return torch.cat(parts, dim=1)

    def _mean_embedding(
        self, observations: dict[str, torch.Tensor], embedding: nn.Embedding
    ) -> torch.Tensor:
        mask = observations["attention_mask"].float()
        longest = max(1, int(mask.sum(1).max()))  # padding is on the right
        mask = mask[:, :longest, None]
        vectors = embedding(observations["input_ids"][:, :longest].long())
        return (vectors * mask).sum(1) / mask.sum(1).clamp(min=1.0)


class _FlatMenuNetwork(MenuNetwork):
    """A `MenuNetwork` on flat features, as Stable-Baselines3 hands them over.

    Args:
        features_dim: D of the features.
        slices: Where ``action_mask`` and ``candidates`` lie in them.
        candidate_shape: (K, F) of the candidates.
        hidden_dim: Width of the layers.
    """

    def __init__(
        self,
        features_dim: int,
        slices: dict[str, slice],
        candidate_shape: tuple[int, int],
        hidden_dim: int,
    ) -> None:
        self._shape = candidate_shape
        self._mask, self._candidates = slices["action_mask"], slices["candidates"]
        # Not the mask: it would give each slot weights of its own.
        rest = torch.ones(features_dim, dtype=torch.bool)
        rest[self._mask] = rest[self._candidates] = False
        num_candidates, num_features = candidate_shape
        self.latent_dim_pi = self._mask.stop - self._mask.start
        self.latent_dim_vf = hidden_dim
        super().__init__(
            num_features, int(rest.sum()), self.latent_dim_pi - num_candidates, hidden_dim
        )
        self.register_buffer("_rest", rest, persistent=False)

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns logits (B, num actions) and the critic's latent (B, hidden_dim)."""
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        """Returns the logits of all actions."""
        return self.logits(*self._split(features), features[:, self._mask])

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        """Returns what the value is read from."""
        return self.latent(*self._split(features))

    def _split(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the candidates (B, K, F), and what is neither they nor the mask (B, R)."""
        candidates = features[:, self._candidates].unflatten(1, self._shape)
        return candidates, features[:, self._rest]


class MenuPolicy(MaskableMultiInputActorCriticPolicy):
    """Policy for `sb3_contrib.MaskablePPO` on `coding_gym.wrappers.MenuActions`.

    What it learns of one candidate holds for all: a flat network would have to learn each of
    dozens of slots by itself. Saves and loads as any policy of Stable-Baselines3.

    Args:
        observation_space: As `MenuActions` gives it.
        action_space: As `MenuActions` gives it.
        lr_schedule: Learning rate by progress.
        hidden_dim: Width of the layers.
        embedding_dim: Numbers per token of the text; 0 leaves the text out.
        **kwargs: As for `MaskableMultiInputActorCriticPolicy`, without ``net_arch``.

    Raises:
        InvalidArgumentError: The observation space is not that of `MenuActions`, the algorithm
            knows no masks, or an argument is not of use.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Discrete,
        lr_schedule: Callable[[float], float],
        *,
        hidden_dim: int = 64,
        embedding_dim: int = 0,
        **kwargs: Any,
    ) -> None:
        if "use_sde" in kwargs:  # PPO and A2C give it, MaskablePPO does not
            raise InvalidArgumentError("MenuPolicy is for sb3_contrib.MaskablePPO")
        if kwargs.get("net_arch"):  # an empty one comes from a saved policy
            raise InvalidArgumentError(
                "MenuPolicy has a network of its own, whose width is hidden_dim; omit net_arch"
            )
        keys = getattr(observation_space, "spaces", {})
        missing = [key for key in MENU_KEYS if key not in keys]
        if missing:
            raise InvalidArgumentError(
                f"MenuPolicy reads {', '.join(MENU_KEYS)}; the observation has no "
                f"{', '.join(missing)}; wrap the env in MenuActions"
            )
        self._hidden_dim = at_least_one("hidden_dim", hidden_dim)
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            **{
                "features_extractor_class": TokenEmbeddingExtractor,
                "features_extractor_kwargs": {"embedding_dim": embedding_dim},
                "net_arch": [],
                **kwargs,
            },
        )

    def evaluate_actions(
        self, obs: dict[str, Any], actions: Any, action_masks: Any = None
    ) -> tuple[Any, Any, Any]:
        """Returns values, log-probabilities of the actions, and the entropy to reward.

        That is the entropy of the kinds of action plus, on a scale from 0 to 1, that among the
        candidates. Rewarding the entropy over all actions would be rewarding "try a candidate",
        for the number of ways to do it.
        """
        values, log_probs, _ = super().evaluate_actions(obs, actions, action_masks)
        probabilities = self.action_dist.distribution.probs
        num_candidates = self.observation_space["candidates"].shape[0]
        fixed, tries = probabilities[:, :-num_candidates], probabilities[:, -num_candidates:]
        sums = tries.sum(1, keepdim=True)
        among = _entropy(tries / sums.clamp(min=_TINY)) / math.log(max(2, num_candidates))
        return values, log_probs, _entropy(torch.cat([fixed, sums], dim=1)) + among

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        """Makes the networks and the optimizer; called by the parent's constructor."""
        space = self.observation_space
        shape = cast("tuple[int, int]", space["candidates"].shape)
        self.mlp_extractor = _FlatMenuNetwork(
            self.features_dim, self.features_extractor.slices, shape, self._hidden_dim
        )
        self.action_net = nn.Identity()  # the network gives logits already
        self.value_net = nn.Linear(self.mlp_extractor.latent_dim_vf, 1)
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )

    def _get_constructor_parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = super()._get_constructor_parameters()
        return {**parameters, "hidden_dim": self._hidden_dim}


def _entropy(probabilities: Any) -> Any:
    """Returns the entropy of each row, in nats."""
    return -(probabilities * probabilities.clamp(min=_TINY).log()).sum(dim=1)
