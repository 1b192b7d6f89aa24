"""Token ids as actions."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from coding_gym.action import Completion, Stop
from coding_gym.arguments import at_least_one
from coding_gym.errors import InvalidArgumentError
from coding_gym.wrappers.chain import check_order


class TokenActions(gym.ActionWrapper[Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Takes replies as token ids.

    *Action*: ``MultiDiscrete`` int64 of shape ``(max_new_tokens,)``, ids of the env's tokenizer.
    The first id that ends a reply, and all after it, are left out: the padding id, end of text,
    and ``<|im_end|>`` where the vocabulary has them (the tokenizer's ``end_ids``). The rest is
    decoded and played as a `coding_gym.Completion` with exactly these ids. Every action of the
    space is played, also one that is no valid UTF-8. A `coding_gym.Stop` passes as it is.

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not.
        max_new_tokens: Length of an action, in tokens.

    Raises:
        InvalidArgumentError: ``MenuActions`` is inside.
    """

    def __init__(self, env: gym.Env[Any, Any], max_new_tokens: int = 256) -> None:
        core = check_order(TokenActions, env)
        length = at_least_one("max_new_tokens", max_new_tokens)
        gym.utils.RecordConstructorArgs.__init__(self, max_new_tokens=length)
        gym.ActionWrapper.__init__(self, env)
        self._tokenizer = core.tokenizer
        self._length = length
        self.action_space = spaces.MultiDiscrete(
            np.full(length, self._tokenizer.vocab_size, dtype=np.int64)
        )

    def action(self, action: NDArray[np.int64] | Stop) -> str:
        """Returns the reply that the ids spell.

        Raises:
            InvalidArgumentError: The action is not in the space.
        """
        if isinstance(action, Stop):
            return action
        try:
            ids = np.asarray(action)
        except ValueError:  # lists of different lengths
            ids = np.array([])
        if ids not in self.action_space:
            raise InvalidArgumentError(
                f"an action is {self._length} token ids in the vocabulary "
                f"{self._tokenizer.name} (0 to {self._tokenizer.vocab_size - 1}), got {_show(ids)}"
            )
        ends = np.flatnonzero(np.isin(ids, list(self._tokenizer.end_ids)))
        reply: list[int] = ids[: ends[0] if ends.size else None].tolist()
        return Completion(self._tokenizer.decode(reply), reply)


def _show(ids: NDArray[Any]) -> str:
    values = f", {ids.min()} to {ids.max()}" if ids.size and ids.dtype.kind in "iuf" else ""
    return f"an array of {ids.dtype}, shape {ids.shape}{values}"
