"""The number of tokens of a growing chat.

The time of a step does not depend on the length of the episode, because only the counts of earlier
turns are kept. `coding_gym.text.chat_history` keeps the ids.
"""

from collections.abc import Sequence

from coding_gym.text.chat import Chat, Memo
from coding_gym.trajectory import Message


class ChatCount:
    """Counts the tokens of a request to the policy, including the generation prompt.

    Every method returns the increase of the count. The count is exact after every tool result; it
    does not include the end of a reply without a result.

    Args:
        chat: The layout.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.reply(())

    def opening(self, messages: Sequence[Message]) -> int:
        """Counts the prompt."""
        part = self._chat.opening(messages)
        return len(part.ids) + len(part.prompt)

    def reply(self, ids: Sequence[int]) -> int:
        """Counts the ids; the end of the reply is counted with the next messages."""
        self._ids, self._counted = ids, len(ids)
        self._answers: list[Message] = []
        self._memo: Memo = {}  # the ids of the answers
        return self._counted

    def answer(self, message: Message) -> int:
        """Counts all results so far, because the text around them can depend on their number."""
        self._answers.append(message)
        part = self._chat.answers(self._answers, self._memo)
        count = len(self._chat.join(self._ids, part.ids)) + len(part.prompt)
        growth, self._counted = count - self._counted, count
        return growth
