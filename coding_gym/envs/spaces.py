"""The spaces: token ids with their mask; any text, sampled as valid tool calls."""

import json
from typing import Any

import numpy as np
from gymnasium import spaces

from coding_gym.tools import get_toolset


def token_arrays(vocab_size: int, num_tokens: int) -> spaces.Dict:
    """Returns the space of ``input_ids`` and ``attention_mask``, each of shape (num_tokens,)."""
    shape = (num_tokens,)
    return spaces.Dict(
        {
            "input_ids": spaces.Box(0, vocab_size - 1, shape, np.int32),
            "attention_mask": spaces.Box(0, 1, shape, np.int8),
        }
    )


class ActionText(spaces.Text):
    """All Unicode strings; samples are tool calls of one toolset, as bare JSON.

    Gymnasium's own ``Text`` accepts only strings over a fixed character set, which a language
    model's replies do not keep to.

    Args:
        toolset: Name of the toolset that samples are drawn from.
        seed: Seed of the samples.
    """

    def __init__(self, toolset: str = "nano", seed: int | np.random.Generator | None = None):
        self.toolset = toolset
        super().__init__(max_length=1 << 24, min_length=0, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draws a valid call as ``{"name": …, "arguments": {…}}``; takes no mask."""
        if mask is not None or probability is not None:
            raise ValueError("ActionText takes no mask and no probability")
        call = get_toolset(self.toolset).sample_call(self.np_random)
        return json.dumps({"name": call.name, "arguments": dict(call.arguments)})

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string."""
        return isinstance(x, str)

    def __eq__(self, other: object) -> bool:
        """Whether the other space has the same toolset."""
        return isinstance(other, ActionText) and other.toolset == self.toolset

    def __hash__(self) -> int:
        return hash((ActionText, self.toolset))

    def __repr__(self) -> str:
        return f"ActionText({self.toolset!r})"
