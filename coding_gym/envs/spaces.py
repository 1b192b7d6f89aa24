"""The spaces: token ids with their mask; any text, sampled as valid tool calls."""

import contextlib
from typing import Any

import numpy as np
from gymnasium import spaces

from coding_gym.errors import InvalidArgumentError
from coding_gym.tools import get_toolset
from coding_gym.tools.formats import render_calls

_MAX_DRAWS = 100


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
    """All Unicode strings; samples are tool calls of one toolset, in one tool format.

    Gymnasium's own ``Text`` accepts only strings over a fixed character set, which a language
    model's replies do not keep to.

    Args:
        toolset: Name of the toolset that samples are drawn from.
        tool_format: How they are written; ``auto`` writes ``json``. A call that the format cannot
            carry is drawn again, and after many draws written as JSON.
        seed: Seed of the samples.
    """

    def __init__(
        self,
        toolset: str = "nano",
        tool_format: str = "auto",
        seed: int | np.random.Generator | None = None,
    ):
        self.toolset, self.tool_format = toolset, tool_format
        super().__init__(max_length=1 << 24, min_length=0, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draws a valid call; takes no mask."""
        if mask is not None or probability is not None:
            raise ValueError("ActionText takes no mask and no probability")
        toolset = get_toolset(self.toolset)
        for _ in range(_MAX_DRAWS):
            call = toolset.sample_call(self.np_random)
            with contextlib.suppress(InvalidArgumentError):
                return render_calls([call], self.tool_format, toolset.schemas)
        return render_calls([call], "json", toolset.schemas)

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string."""
        return isinstance(x, str)

    def __eq__(self, other: object) -> bool:
        """Whether the other space has the same toolset and tool format."""
        return isinstance(other, ActionText) and other._names == self._names

    def __hash__(self) -> int:
        return hash((ActionText, self._names))

    def __repr__(self) -> str:
        return f"ActionText({self.toolset!r}, {self.tool_format!r})"

    @property
    def _names(self) -> tuple[str, str]:
        return self.toolset, self.tool_format
