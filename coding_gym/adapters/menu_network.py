"""The network for menus, in any trainer: one scorer for all candidates. Needs torch."""

from coding_gym.optional import missing_extra

try:
    import torch
    from torch import nn
except ImportError as error:
    raise missing_extra("torch", "sb3") from error

MENU_KEYS = ("action_mask", "candidates", "menu")
"""What is read of the observations of `MenuActions`."""

MASKED = -1e8
"""The logit of an action that makes no sense: its probability is exactly 0 in float32, and neither
entropy nor gradient is NaN."""


class MenuNetwork(nn.Module):
    """Scores every candidate by the same weights, and the other actions from the whole menu.

    What is learnt of slot 7 of one program holds for every slot of every program. The probability
    of an action is that of its kind (one of the fixed actions, or "try a candidate") times, for the
    latter, that of the candidate among those that may be tried. So an untrained policy tries a
    candidate as often as it submits, not dozens of times as often.

    Shapes: B observations, K candidates of F features, R other numbers, H = ``hidden_dim``; all
    tensors are float32.

    Args:
        num_features: F.
        rest_dim: R.
        num_fixed: Actions that try no candidate; they come before those that do.
        hidden_dim: H, the width of the layers.
    """

    def __init__(self, num_features: int, rest_dim: int, num_fixed: int, hidden_dim: int) -> None:
        super().__init__()
        self._num_fixed = num_fixed
        self.actor = _MenuReader(num_features, rest_dim, hidden_dim)
        self.critic = _MenuReader(num_features, rest_dim, hidden_dim)
        self.kind = nn.Linear(hidden_dim, num_fixed + 1)
        self.score = nn.Sequential(
            nn.Linear(2 * hidden_dim, hidden_dim), nn.Tanh(), nn.Linear(hidden_dim, 1)
        )
        for last in (self.kind, self.score[-1]):  # near-uniform at first
            nn.init.orthogonal_(last.weight, gain=0.01)
            nn.init.zeros_(last.bias)

    def logits(
        self, candidates: torch.Tensor, rest: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Returns the logits of all actions, (B, num_fixed + K).

        Args:
            candidates: (B, K, F); zeros where there is none.
            rest: (B, R).
            mask: (B, num_fixed + K), above 0 where an action makes sense. Only its candidates are
                masked here: a trainer masks the whole distribution.
        """
        whole, each = self.actor(candidates, rest)
        pairs = torch.cat([each, whole.unsqueeze(1).expand_as(each)], dim=2)
        scores = self.score(pairs).squeeze(2)
        allowed = mask[:, self._num_fixed :] > 0
        among_candidates = scores.masked_fill(~allowed, MASKED).log_softmax(dim=1)
        kinds = self.kind(whole)
        return torch.cat([kinds[:, :-1], kinds[:, -1:] + among_candidates], dim=1)

    def latent(self, candidates: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
        """Returns what the value is read from, (B, H); arguments as for `logits`."""
        return self.critic(candidates, rest)[0]


class _MenuReader(nn.Module):
    """Encodes each candidate, and the menu with the mean and the maximum of the candidates."""

    def __init__(self, num_features: int, rest_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.each = nn.Sequential(nn.Linear(num_features, hidden_dim), nn.Tanh())
        self.whole = nn.Sequential(
            nn.Linear(rest_dim + 2 * hidden_dim, hidden_dim),
            nn.Tanh(),
            nn.Linear(hidden_dim, hidden_dim),
            nn.Tanh(),
        )

    def forward(
        self, candidates: torch.Tensor, rest: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the encoding of the whole (B, H) and of each candidate (B, K, H)."""
        exists = (candidates != 0).any(dim=2, keepdim=True)
        each = self.each(candidates) * exists
        mean = each.sum(1) / exists.sum(1).clamp(min=1)
        whole = self.whole(torch.cat([rest, mean, each.amax(1)], dim=1))
        return whole, each
