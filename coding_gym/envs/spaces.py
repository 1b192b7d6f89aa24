"""The observation space (token ids with their mask) and the action space (any text)."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from coding_gym.action import Completion
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools import get_toolset

_MAX_LENGTH = 1 << 24  # characters of an action


def token_arrays(vocab_size: int, num_tokens: int) -> spaces.Dict:
    """Returns the space of ``input_ids`` and ``attention_mask``, each of shape (num_tokens,)."""
    shape = (num_tokens,)
    return spaces.Dict(
        {
            "input_ids": spaces.Box(0, vocab_size - 1, shape, np.int32),
            "attention_mask": spaces.Box(0, 1, shape, np.int8),
        }
    )


def dict_space(wrapper: str, env: gym.Env[Any, Any]) -> spaces.Dict:
    """Returns the observation space of ``env``, for a wrapper that adds keys.

    Raises:
        InvalidArgumentError: A wrapper inside ``env`` has replaced the Dict space.
    """
    if not isinstance(env.observation_space, spaces.Dict):
        raise InvalidArgumentError(
            f"{wrapper} needs Dict observations, got {env.observation_space}; "
            f"apply {wrapper} before wrappers that change the observation space"
        )
    return env.observation_space


def pad(
    ids: Sequence[int] | NDArray[np.int32], pad_id: int, max_tokens: int
) -> dict[str, NDArray[np.int32] | NDArray[np.int8]]:
    """Returns ids as arrays of length ``max_tokens``, padded on the right.

    Args:
        ids: Token ids, at most ``max_tokens``.
        pad_id: The id of the padding token.
        max_tokens: Length of both arrays.

    Returns:
        ``input_ids`` int32 of shape ``(max_tokens,)``, and ``attention_mask`` int8 of the same
        shape, 1 on the text and 0 on the padding.
    """
    input_ids = np.full(max_tokens, pad_id, dtype=np.int32)
    input_ids[: len(ids)] = ids
    attention_mask = np.zeros(max_tokens, dtype=np.int8)
    attention_mask[: len(ids)] = 1
    return {"input_ids": input_ids, "attention_mask": attention_mask}


class ActionText(spaces.Text):
    """All strings of up to 2**24 characters; a sample is a `Completion` with a random call.

    ``Text`` of Gymnasium accepts only strings over a fixed character set.

    Args:
        toolset: Name of the toolset.
        seed: Seed of the samples.
    """

    def __init__(
        self, toolset: str = "nano", seed: int | np.random.Generator | None = None
    ) -> None:
        self.toolset = toolset
        super().__init__(max_length=_MAX_LENGTH, min_length=0, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Returns a random tool call; raises ValueError for a mask or probability."""
        if mask is not None or probability is not None:
            raise ValueError(f"mask and probability must be None for {type(self).__name__}")
        return Completion("", calls=[get_toolset(self.toolset).sample_call(self.np_random)])

    def contains(self, x: Any) -> bool:
        """Returns whether ``x`` is a string of an allowed length."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __eq__(self, other: object) -> bool:
        """Returns whether the other space is an `ActionText` of the same toolset."""
        return isinstance(other, ActionText) and repr(other) == repr(self)

    def __repr__(self) -> str:
        return f"ActionText({self.toolset!r})"
