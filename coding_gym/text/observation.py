"""Text as fixed-size arrays, the form in which an observation leaves the environment."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coding_gym.arguments import at_least_one
from coding_gym.text.tokenizers import Tokenizer


def encode_observation(
    text: str, tokenizer: Tokenizer, max_tokens: int
) -> dict[str, NDArray[np.int32] | NDArray[np.int8]]:
    """Encodes ``text`` into arrays of ``max_tokens`` entries.

    Where the text has more tokens its tail is kept, because a command's last lines say how it
    ended. Where it has fewer the arrays are padded on the right.

    Args:
        text: Raw content, without roles or control tokens.
        tokenizer: Makes the ids.
        max_tokens: Length of both arrays, at least 1.

    Returns:
        ``input_ids`` int32 of shape ``(max_tokens,)``, and ``attention_mask`` int8 of the same
        shape, 1 on the text and 0 on the padding.

    Raises:
        InvalidArgumentError: ``max_tokens`` is less than 1.
    """
    at_least_one("max_tokens", max_tokens)
    return pad(tokenizer.encode(text)[-max_tokens:], tokenizer.pad_id, max_tokens)


def pad(
    ids: Sequence[int] | NDArray[np.int32], pad_id: int, max_tokens: int
) -> dict[str, NDArray[np.int32] | NDArray[np.int8]]:
    """Puts at most ``max_tokens`` ids into arrays of that length; see `encode_observation`."""
    input_ids = np.full(max_tokens, pad_id, dtype=np.int32)
    input_ids[: len(ids)] = ids
    attention_mask = np.zeros(max_tokens, dtype=np.int8)
    attention_mask[: len(ids)] = 1
    return {"input_ids": input_ids, "attention_mask": attention_mask}
