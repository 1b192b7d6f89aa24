"""The ids of one chat as it grows, of which the last so many are kept."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coding_gym.text.chat import Chat, Part


class TranscriptIds:
    """One chat as ids. Each message is encoded once, when it comes.

    Args:
        chat: Turns messages into ids.
        max_tokens: How many ids are kept, the last ones.
    """

    def __init__(self, chat: Chat, max_tokens: int) -> None:
        self.num_messages = 0
        self.num_replies = 0
        self._chat = chat
        self._max_tokens = max_tokens
        self._tail = np.empty(0, dtype=np.int32)
        self._prompt: list[int] = []

    def extend(
        self, messages: Sequence[Mapping[str, Any]], sampled: Sequence[Sequence[int] | None]
    ) -> None:
        """Adds messages.

        Args:
            messages: The new ones, in order.
            sampled: For each of the policy's among them the sampled ids, or None where only the
                text is known, which is then encoded.
        """
        self.num_messages += len(messages)
        starts = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
        bounds = [*starts, len(messages)]
        if bounds[0]:
            self._add([], self._chat.opening(messages[: bounds[0]]))
        for start, end, ids in zip(starts, bounds[1:], sampled, strict=True):
            if ids is None:
                ids = self._chat.tokenizer.encode(messages[start]["content"])
            answers, prompt = self._chat.answers(messages[start + 1 : end])
            self._add(self._prompt, Part(self._chat.join(ids, answers), prompt))
            self.num_replies += 1

    def _add(self, before: Sequence[int], part: Part) -> None:
        new = np.array([*before, *part.ids], dtype=np.int32)
        self._tail = np.concatenate((self._tail, new))[-self._max_tokens :]
        self._prompt = part.prompt

    def ids(self, *, asks: bool) -> NDArray[np.int32]:
        """Returns the last ``max_tokens`` ids or fewer, int32.

        Args:
            asks: Whether the generation prompt, which asks for the policy's reply, ends them.
        """
        if not asks:
            return self._tail
        prompt = np.array(self._prompt, dtype=np.int32)
        return np.concatenate((self._tail, prompt))[-self._max_tokens :]
