"""One chat as it grows, as ids or as text. Each message is laid out once, when it comes.

| overflow | kept of the ids |
|---|---|
| ``tail`` | the last ones, wherever that cuts |
| ``ends`` | system prompt and task, and of the turns the newest that fit, each of them whole |
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from coding_gym.arguments import unknown_name
from coding_gym.text.chat import Chat, Messages

OVERFLOWS = ("tail", "ends")

Reply = TypeVar("Reply")

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
        self._messages: Messages = ()
        self._opening = _array([])  # stays empty where it is the first of the turns
        self._head: NDArray[np.int32] | None = None  # of the opening, once turns are left out
        self._close: Callable[[str], list[int]] = lambda _: []
        self._turns: deque[tuple[NDArray[np.int32], int]] = deque()
        self._num_ids = 0  # of all turns
        self._num_left_out = 0
        self._prompt: list[int] = []

    def extend(self, messages: Messages, replies: Sequence[Sequence[int]]) -> None:
        """Adds messages.

        Args:
            messages: The new ones, in order.
            replies: The ids of each of the policy's among them.
        """
        for turn, ids in _turns(messages, replies):
            if ids is None:
                opening, self._prompt = self._chat.opening(turn)
                if self._keeps_opening:
                    self._opening, self._messages = _array(opening), list(turn)
                else:
                    self._add(opening, len(turn))
            else:
                answers, prompt = self._chat.answers(turn[1:])
                self._add([*self._prompt, *self._chat.join(ids, answers)], len(turn))
                self._prompt = prompt
                self.num_replies += 1
            self._let_go()
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

    def _add(self, ids: Sequence[int], num_messages: int) -> None:
        self._turns.append((_array(ids), num_messages))
        self._num_ids += len(ids)

    def _let_go(self) -> None:
        """Drops the turns that will never be observed again."""
        while len(self._turns) > 1:
            oldest, num_messages = self._turns[0]
            if self._keeps_opening:
                is_kept = len(self._opening) + self._num_ids + len(self._prompt) <= self._max_tokens
            else:
                is_kept = self._num_ids - len(oldest) < self._max_tokens
            if is_kept:
                return
            self._turns.popleft()
            self._num_ids -= len(oldest)
            self._num_left_out += num_messages
            if self._keeps_opening:
                self._note_left_out()

    def _note_left_out(self) -> None:
        if self._head is None:
            head, self._close = self._chat.split_opening(self._messages)
            self._head = _array(head)
        end = _array(self._close(_NOTICE.format(self._num_left_out)))
        self._opening = np.concatenate((self._head, end))


class ChatText:
    """The text of one chat. Contents are neutral: the control tokens in it are the layout's own.

    Args:
        chat: Lays messages out.
    """

    def __init__(self, chat: Chat) -> None:
        self.num_messages = 0
        self.num_replies = 0
        self._chat = chat
        self._texts: list[str] = []
        self._prompt = ""

    def extend(self, messages: Messages, replies: Sequence[str]) -> None:
        """Adds messages, in order; ``replies``: the text of each of the policy's among them."""
        for turn, reply in _turns(messages, replies):
            if reply is None:
                text, self._prompt = self._chat.opening_text(turn)
                self._texts.append(text)
            else:
                text, prompt = self._chat.answers_text(turn[1:])
                self._texts += [self._prompt, self._chat.neutral(reply), text]
                self._prompt = prompt
                self.num_replies += 1
        self.num_messages += len(messages)

    def text(self, *, asks: bool) -> str:
        """Returns the whole chat; ``asks``: with what asks for the policy's reply."""
        return "".join([*self._texts, self._prompt if asks else ""])


def _turns(messages: Messages, replies: Sequence[Reply]) -> Iterator[tuple[Messages, Reply | None]]:
    """Yields the opening, where there is one, with None, and then each reply's messages with it."""
    starts = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    bounds = [*starts, len(messages)]
    if bounds[0]:
        yield messages[: bounds[0]], None
    for start, end, reply in zip(starts, bounds[1:], replies, strict=True):
        yield messages[start:end], reply


def _array(ids: Sequence[int]) -> NDArray[np.int32]:
    return np.array(ids, dtype=np.int32)
