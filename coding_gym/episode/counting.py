"""The number of tokens of a growing chat. Every text is encoded a fixed number of times.

The time of a step does not depend on the length of the episode: of earlier turns only numbers are
kept. See `coding_gym.text.chat_history` for the ids themselves.
"""

from collections.abc import Sequence

from coding_gym.text.chat import Chat
from coding_gym.trajectory import Message

_EMPTY: Message = {"role": "tool", "content": ""}


class ChatCount:
    """Counts the chat as the policy is sent it, what asks for its next reply included.

    Every method returns by how much the count grows.

    After every turn the count is exact. Within a turn it is exact up to the first answer; the ones
    after it count as they would behind an empty one, since what stands around several answers can
    depend on all of them.

    Args:
        chat: How it is laid out.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._num_empty = len(chat.answers([_EMPTY]).ids)
        self._ids: Sequence[int] = ()
        self._answers: list[Message] = []
        self._counted = 0

    def opening(self, messages: Sequence[Message]) -> int:
        """Counts the prompt."""
        part = self._chat.opening(messages)
        return len(part.ids) + len(part.prompt)

    def reply(self, ids: Sequence[int]) -> int:
        """Counts the ids; what closes the reply comes with what follows it."""
        self._ids, self._answers, self._counted = ids, [], len(ids)
        return self._counted

    def answer(self, message: Message) -> int:
        """Counts an answer."""
        self._answers.append(message)
        if len(self._answers) == 1:
            return self._grow_to(self._exact())
        num_added = len(self._chat.answers([_EMPTY, message]).ids) - self._num_empty
        return self._grow_to(self._counted + num_added)

    def close(self) -> int:
        """Counts all answers together, where there is not one alone."""
        return 0 if len(self._answers) == 1 else self._grow_to(self._exact())

    def _exact(self) -> int:
        part = self._chat.answers(self._answers)
        return len(self._chat.join(self._ids, part.ids)) + len(part.prompt)

    def _grow_to(self, count: int) -> int:
        before, self._counted = self._counted, count
        return count - before
