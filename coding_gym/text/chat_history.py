"""The token ids of one growing chat; each message is encoded once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coding_gym.text.chat import Chat, Memo, Messages, Part, turns_of


class ChatIds:
    """The ids of one chat; ``len`` returns their number, including the generation prompt.

    The time to add a message does not depend on the length of the chat.

    Args:
        chat: Converts messages to ids.

    Attributes:
        num_messages: Number of messages that `extend` has added.
        num_replies: Number of the policy's replies among these messages.
    """

    def __init__(self, chat: Chat) -> None:
        self.num_messages = 0
        self.num_replies = 0
        self._chat = chat
        self._past: list[int] = []  # before the latest reply
        self._latest = Part([], [])
        self.reply(())

    def __len__(self) -> int:
        return len(self._past) + len(self._latest.ids) + len(self._latest.prompt)

    def opening(self, messages: Messages) -> None:
        """Adds messages before the first reply."""
        self._answers += messages
        self._latest = self._chat.opening(self._answers)

    def reply(self, ids: Sequence[int]) -> None:
        """Adds the ids of a reply; `answer` adds the reply's closing token."""
        self._past += [*self._latest.ids, *self._latest.prompt]
        self._reply = ids
        self._latest = Part(list(ids), [])
        self._answers: list[Mapping[str, Any]] = []
        self._memo: Memo = {}  # the ids of the answers

    def answer(self, *messages: Mapping[str, Any]) -> None:
        """Adds messages after a reply; converts all messages since the reply together."""
        self._answers += messages
        part = self._chat.answers(self._answers, self._memo)
        self._latest = Part(self._chat.join(self._reply, part.ids), part.prompt)

    def extend(self, messages: Messages, replies: Sequence[Sequence[int]]) -> None:
        """Adds messages, which can include replies of the policy.

        Args:
            messages: The new messages, in order.
            replies: The ids of each reply among the messages.
        """
        for turn, ids in turns_of(messages, replies):
            if ids is None and self.num_replies:  # a notice after the last reply
                self.answer(*turn)
            elif ids is None:
                self.opening(turn)
            else:
                self.reply(ids)
                self.answer(*turn[1:])
                self.num_replies += 1
        self.num_messages += len(messages)

    def ids(self, max_tokens: int, *, with_prompt: bool = True) -> NDArray[np.int32]:
        """Returns the last ids of the chat, int32, of shape (n,) with n at most ``max_tokens``.

        Args:
            max_tokens: Maximum number of ids.
            with_prompt: Whether the ids end with the generation prompt for the policy's reply.
        """
        latest = [*self._latest.ids, *(self._latest.prompt if with_prompt else [])]
        return np.array([*self._past[-max_tokens:], *latest][-max_tokens:], dtype=np.int32)
