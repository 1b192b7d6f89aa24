"""Text as arrays of fixed size: the observations of the environment."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def pad(
    ids: Sequence[int] | NDArray[np.int32], pad_id: int, max_tokens: int
) -> dict[str, NDArray[np.int32] | NDArray[np.int8]]:
    """Returns at most ``max_tokens`` ids as arrays of that length, padded on the right.

    Args:
        ids: Token ids.
        pad_id: The id of the padding.
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
