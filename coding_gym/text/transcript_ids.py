"""The ids of one chat as it grows, as far as they are kept."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coding_gym.text.chat import Chat, Part
from coding_gym.text.kept_ids import keep


class TranscriptIds:
    """One chat as ids. Each message is encoded once, when it comes.

    Args:
        chat: Turns messages into ids.
        max_tokens: How many ids are kept.
        overflow: Which; see `coding_gym.text.kept_ids`.

    Raises:
        UnknownNameError: There is no such overflow.
    """

    def __init__(self, chat: Chat, max_tokens: int, overflow: str = "tail") -> None:
        self.num_messages = 0
        self.num_replies = 0
        self._chat = chat
        self._kept = keep(overflow, chat, max_tokens)

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
            self._kept.open(messages[: bounds[0]])
        for start, end, ids in zip(starts, bounds[1:], sampled, strict=True):
            if ids is None:
                ids = self._chat.tokenizer.encode(messages[start]["content"])
            answers, prompt = self._chat.answers(messages[start + 1 : end])
            self._kept.add(Part(self._chat.join(ids, answers), prompt), end - start)
            self.num_replies += 1

    def ids(self, *, asks: bool) -> NDArray[np.int32]:
        """Returns at most ``max_tokens`` ids, int32.

        Args:
            asks: Whether the generation prompt, which asks for the policy's reply, ends them.
        """
        return self._kept.ids(asks=asks)
