"""The number of tokens of a growing chat.

The time of a step does not depend on the length of the episode: of earlier turns only numbers are
kept. See `coding_gym.text.chat_history` for the ids themselves.
"""

from collections.abc import Sequence

from coding_gym.text.chat import Chat, Memo
from coding_gym.trajectory import Message


class ChatCount:
    """Counts the chat as the policy is sent it, what asks for its next reply included.

    Every method returns by how much the count grows. It is exact after every answer; what closes a
    reply without an answer is not counted.

    Args:
        chat: How it is laid out.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.reply(())

    def opening(self, messages: Sequence[Message]) -> int:
        """Counts the prompt."""
        part = self._chat.opening(messages)
        return len(part.ids) + len(part.prompt)

    def reply(self, ids: Sequence[int]) -> int:
        """Counts the ids; what closes the reply comes with what follows it."""
        self._ids, self._counted = ids, len(ids)
        self._answers: list[Message] = []
        self._memo: Memo = {}  # of the answers' ids
        return self._counted

    def answer(self, message: Message) -> int:
        """Counts all answers so far: what stands around them can depend on their number."""
        self._answers.append(message)
        part = self._chat.answers(self._answers, self._memo)
        count = len(self._chat.join(self._ids, part.ids)) + len(part.prompt)
        growth, self._counted = count - self._counted, count
        return growth
