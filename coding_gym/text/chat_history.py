"""The ids of one chat as it grows. Each message is encoded once, when it comes.

| overflow | kept of the ids |
|---|---|
| ``tail`` | the last ones, wherever that cuts |
| ``ends`` | system prompt and task, and of the turns the newest that fit, each of them whole |
"""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from coding_gym.arguments import unknown_name
from coding_gym.text.chat import Chat, Messages, turns_of

OVERFLOWS = ("tail", "ends")

_NOTICE = "\n\n[{} messages of this chat are left out here.]"


class ChatIds:
    """The ids of one chat.

    With ``ends``, turns are left out whole, the oldest first, and the end of the prompt says how
    many messages that are; when that begins, the prompt is encoded a second time. Only a newest
    turn that does not fit by itself is cut, at its beginning; and where the prompt alone is too
    long, the last ids are kept.

    Args:
        chat: Turns messages into ids.
        max_tokens: How many ids are kept.
        overflow: One of `OVERFLOWS`.

    Raises:
        UnknownNameError: There is no such overflow.
    """

    def __init__(self, chat: Chat, max_tokens: int, overflow: str = "tail") -> None:
        if overflow not in OVERFLOWS:
            raise unknown_name("overflow", overflow, OVERFLOWS)
        self.num_messages = 0
        self.num_replies = 0
        self._chat = chat
        self._max_tokens = max_tokens
        self._keeps_opening = overflow == "ends"
        self._messages: Messages = ()  # of the opening
        self._opening = _array([])
        self._noted_opening: Callable[[str], list[int]] | None = None
        self._turns: deque[tuple[NDArray[np.int32], int]] = deque()
        self._num_left_out = 0
        self._prompt: list[int] = []

    def extend(self, messages: Messages, replies: Sequence[Sequence[int]]) -> None:
        """Adds messages.

        Args:
            messages: The new ones, in order.
            replies: The ids of each of the policy's among them.
        """
        for turn, ids in turns_of(messages, replies):
            if ids is None:
                part = self._chat.opening(turn)
                self._messages, self._opening = turn, _array(part.ids)
            else:
                part = self._chat.answers(turn[1:])
                turn_ids = [*self._prompt, *self._chat.join(ids, part.ids)]
                self._turns.append((_array(turn_ids), len(turn)))
                self.num_replies += 1
            self._prompt = part.prompt
            while self._keeps_opening and len(self._turns) > 1 and self._overflows():
                self._leave_out_oldest()
        self.num_messages += len(messages)

    def ids(self, *, asks: bool) -> NDArray[np.int32]:
        """Returns at most ``max_tokens`` ids, int32.

        Args:
            asks: Whether the generation prompt, which asks for the policy's reply, ends them.
        """
        turns = np.concatenate([_array([]), *(ids for ids, _ in self._turns)])
        prompt = _array(self._prompt if asks else [])
        num_free = self._max_tokens - len(self._opening) - len(prompt)
        if self._keeps_opening and 0 < num_free < len(turns):
            turns = turns[-num_free:]
        return np.concatenate((self._opening, turns, prompt))[-self._max_tokens :]

    def _overflows(self) -> bool:
        num_ids = sum(len(ids) for ids, _ in self._turns)
        return len(self._opening) + num_ids + len(self._prompt) > self._max_tokens

    def _leave_out_oldest(self) -> None:
        _, num_messages = self._turns.popleft()
        self._num_left_out += num_messages
        if self._noted_opening is None:
            self._noted_opening = self._chat.noted_opening(self._messages)
        self._opening = _array(self._noted_opening(_NOTICE.format(self._num_left_out)))


def _array(ids: Sequence[int]) -> NDArray[np.int32]:
    return np.array(ids, dtype=np.int32)
