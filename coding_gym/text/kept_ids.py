"""What is kept of a chat's ids where they are more than an observation holds.

| overflow | kept |
|---|---|
| ``tail`` | the last ids, wherever that cuts |
| ``ends`` | system prompt and task, and of the turns the newest that fit, each of them whole |
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from coding_gym.arguments import unknown_name
from coding_gym.text.chat import Chat, Part

OVERFLOWS = ("tail", "ends")

_NOTICE = "\n\n[{} messages of this chat are left out here.]"


class KeptIds(Protocol):
    """The ids of one chat that are kept of it."""

    def open(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Takes the messages before the policy's first reply."""
        ...

    def add(self, part: Part, num_messages: int) -> None:
        """Takes a turn: the reply, and the messages that answer it."""
        ...

    def ids(self, *, asks: bool) -> NDArray[np.int32]:
        """Returns what is kept, int32; ``asks``: with what asks for the next reply."""
        ...


def keep(overflow: str, chat: Chat, max_tokens: int) -> KeptIds:
    """Returns what keeps at most ``max_tokens`` ids of a chat.

    Raises:
        UnknownNameError: ``overflow`` is not one of `OVERFLOWS`.
    """
    if overflow not in OVERFLOWS:
        raise unknown_name("overflow", overflow, OVERFLOWS)
    kept: KeptIds = KeptTail(chat, max_tokens)
    return kept if overflow == "tail" else KeptEnds(chat, max_tokens)


class KeptTail:
    """The last ids of a chat."""

    def __init__(self, chat: Chat, max_tokens: int) -> None:
        self._chat = chat
        self._max_tokens = max_tokens
        self._tail = _array([])
        self._prompt: list[int] = []

    def open(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Takes the prompt."""
        self.add(self._chat.opening(messages), len(messages))

    def add(self, part: Part, num_messages: int) -> None:  # noqa: ARG002 - one signature
        """Takes a turn."""
        new = _array([*self._prompt, *part.ids])
        self._tail = np.concatenate((self._tail, new))[-self._max_tokens :]
        self._prompt = part.prompt

    def ids(self, *, asks: bool) -> NDArray[np.int32]:
        """Returns the last ``max_tokens`` ids or fewer."""
        if not asks:
            return self._tail
        return np.concatenate((self._tail, _array(self._prompt)))[-self._max_tokens :]


class KeptEnds:
    """The prompt of a chat and its newest turns.

    Turns are left out whole, the oldest first, and the end of the prompt says how many messages
    that are. Only a newest turn that does not fit by itself is cut, at its beginning; and where the
    prompt alone is too long, the last ids are kept.
    """

    def __init__(self, chat: Chat, max_tokens: int) -> None:
        self._chat = chat
        self._max_tokens = max_tokens
        self._messages: Sequence[Mapping[str, Any]] = ()
        self._opening = _array([])
        self._prompt: list[int] = []
        self._turns: deque[tuple[NDArray[np.int32], int]] = deque()
        self._num_left_out = 0

    def open(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Takes the prompt."""
        self._messages = list(messages)
        ids, self._prompt = self._chat.opening(messages)
        self._opening = _array(ids)

    def add(self, part: Part, num_messages: int) -> None:
        """Takes a turn, and lets go of others for it."""
        self._turns.append((_array([*self._prompt, *part.ids]), num_messages))
        self._prompt = part.prompt
        while len(self._turns) > 1 and self._num_ids() > self._max_tokens:
            self._num_left_out += self._turns.popleft()[1]
            *first, last = self._messages
            content = last["content"] + _NOTICE.format(self._num_left_out)
            self._opening = _array(self._chat.opening([*first, {**last, "content": content}]).ids)

    def ids(self, *, asks: bool) -> NDArray[np.int32]:
        """Returns ``max_tokens`` ids or fewer."""
        turns = np.concatenate([_array([]), *(ids for ids, _ in self._turns)])
        prompt = _array(self._prompt if asks else [])
        room = self._max_tokens - len(self._opening) - len(prompt)
        if 0 < room < len(turns):
            turns = turns[-room:]
        return np.concatenate((self._opening, turns, prompt))[-self._max_tokens :]

    def _num_ids(self) -> int:
        return len(self._opening) + sum(len(ids) for ids, _ in self._turns) + len(self._prompt)


def _array(ids: Sequence[int]) -> NDArray[np.int32]:
    return np.array(ids, dtype=np.int32)
