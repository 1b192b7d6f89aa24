"""The spaces: token ids with their mask; any text, and replies sampled as valid tool calls."""

from typing import Any

import numpy as np
from gymnasium import spaces

from coding_gym.action import Completion
from coding_gym.tools import get_toolset

_SAMPLED = (*"abc(): \n\t", "é", "λ", "中", "🙂", "\u200b")


def token_arrays(vocab_size: int, num_tokens: int) -> spaces.Dict:
    """Returns the space of ``input_ids`` and ``attention_mask``, each of shape (num_tokens,)."""
    shape = (num_tokens,)
    return spaces.Dict(
        {
            "input_ids": spaces.Box(0, vocab_size - 1, shape, np.int32),
            "attention_mask": spaces.Box(0, 1, shape, np.int8),
        }
    )


class AnyText(spaces.Text):
    """All Unicode strings of at most so many characters.

    Gymnasium's own ``Text`` accepts only strings over a fixed character set, which neither a
    language model's replies nor the output of commands keep to. So there is no array of fixed size
    for a text: `gymnasium.spaces.flatten` leaves it as it is, alone and in a ``Dict`` or ``Tuple``.

    Args:
        max_length: The most characters of a text.
        seed: Seed of the samples, which are short.
    """

    def __init__(
        self, max_length: int = 1 << 24, seed: int | np.random.Generator | None = None
    ) -> None:
        super().__init__(max_length=max_length, min_length=0, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: see the class."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draws a text; takes no mask."""
        if mask is not None or probability is not None:
            raise ValueError(f"{type(self).__name__} takes no mask and no probability")
        return self._draw()

    def _draw(self) -> str:
        length = int(self.np_random.integers(0, min(self.max_length, 64) + 1))
        return "".join(self.np_random.choice(_SAMPLED, size=length).tolist())

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __eq__(self, other: object) -> bool:
        """Whether the other space holds the same texts, and draws them in the same way."""
        return isinstance(other, AnyText) and repr(other) == repr(self)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"AnyText({self.max_length})"


class ActionText(AnyText):
    """All Unicode strings; a sample is a `Completion` that carries a call of a toolset.

    Args:
        toolset: Name of the toolset.
        seed: Seed of the samples.
    """

    def __init__(
        self, toolset: str = "nano", seed: int | np.random.Generator | None = None
    ) -> None:
        self.toolset = toolset
        super().__init__(seed=seed)

    def _draw(self) -> str:
        return Completion("", calls=[get_toolset(self.toolset).sample_call(self.np_random)])

    def __repr__(self) -> str:
        return f"ActionText({self.toolset!r})"


@spaces.flatdim.register(AnyText)
def _flatdim(space: AnyText) -> int:
    raise ValueError(f"{space} cannot be flattened to a numpy array: texts have no fixed size")


@spaces.flatten_space.register(AnyText)
def _flatten_space(space: AnyText) -> AnyText:
    return space


@spaces.flatten.register(AnyText)
@spaces.unflatten.register(AnyText)
def _unchanged(space: AnyText, x: str) -> str:  # type: ignore[misc] # noqa: ARG001 - Gymnasium's
    return x
