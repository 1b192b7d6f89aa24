"""A space of texts over all of Unicode."""

from typing import Any

import numpy as np
from gymnasium import spaces

_SAMPLED = (*"abc(): \n\t", "é", "λ", "中", "🙂", "\u200b")


class AnyText(spaces.Text):
    """All strings of at most so many characters.

    Gymnasium's own ``Text`` accepts only strings over a fixed character set, which the output of
    commands does not keep to.

    Args:
        max_length: The most characters of a text.
        seed: Seed of the samples, which are short.
    """

    def __init__(self, max_length: int, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(max_length=max_length, min_length=0, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draws a text; takes no mask."""
        if mask is not None or probability is not None:
            raise ValueError("AnyText takes no mask and no probability")
        length = int(self.np_random.integers(0, min(self.max_length, 64) + 1))
        return "".join(self.np_random.choice(_SAMPLED, size=length).tolist())

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __eq__(self, other: object) -> bool:
        """Whether the other space holds the same texts."""
        return isinstance(other, AnyText) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash((AnyText, self.max_length))

    def __repr__(self) -> str:
        return f"AnyText({self.max_length})"
