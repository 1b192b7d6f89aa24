"""The ids of one growing chat; each message is encoded once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coding_gym.text.chat import Chat, Messages, turns_of


class ChatIds:
    """The ids of one chat.

    Args:
        chat: Converts messages to ids.
        max_tokens: The most ids that `ids` returns: the last ones.

    Attributes:
        num_messages: Number of messages so far.
        num_replies: Number of the policy's messages among them.
    """

    def __init__(self, chat: Chat, max_tokens: int) -> None:
        self.num_messages = 0
        self.num_replies = 0
        self._chat = chat
        self._max_tokens = max_tokens
        self._ids: list[int] = []
        self._prompt: list[int] = []

    def extend(self, messages: Messages, replies: Sequence[Sequence[int]]) -> None:
        """Adds messages.

        Args:
            messages: The new ones, in order.
            replies: The ids of each reply of the policy among them.
        """
        for turn, ids in turns_of(messages, replies):
            if ids is None:
                part = self._chat.opening(turn)
                self._ids += part.ids
            else:
                part = self._chat.answers(turn[1:])
                self._ids += [*self._prompt, *self._chat.join(ids, part.ids)]
                self.num_replies += 1
            self._prompt = part.prompt
        self.num_messages += len(messages)

    def ids(self, *, asks: bool) -> NDArray[np.int32]:
        """Returns at most ``max_tokens`` ids, int32.

        Args:
            asks: Whether the ids end with the generation prompt for the policy's reply.
        """
        ids = [*self._ids[-self._max_tokens :], *(self._prompt if asks else [])]
        return np.array(ids[-self._max_tokens :], dtype=np.int32)
