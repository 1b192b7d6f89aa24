"""The text of one chat as it grows, laid out as a model is prompted."""

from collections.abc import Mapping, Sequence
from typing import Any

from coding_gym.text.chat import Chat


class TranscriptText:
    """One chat as text. Each message is laid out once, when it comes.

    Contents are neutral: the control tokens in the text are the layout's own.

    Args:
        chat: Lays messages out.
    """

    def __init__(self, chat: Chat) -> None:
        self.num_messages = 0
        self._chat = chat
        self._texts: list[str] = []
        self._prompt = ""

    def extend(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Adds messages, in order."""
        self.num_messages += len(messages)
        starts = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
        bounds = [*starts, len(messages)]
        if bounds[0]:
            text, self._prompt = self._chat.opening_text(messages[: bounds[0]])
            self._texts.append(text)
        for start, end in zip(starts, bounds[1:], strict=True):
            self._texts += [self._prompt, self._chat.neutral(messages[start]["content"])]
            text, self._prompt = self._chat.answers_text(messages[start + 1 : end])
            self._texts.append(text)

    def text(self, *, asks: bool) -> str:
        """Returns the whole chat; ``asks``: with what asks for the policy's reply."""
        return "".join([*self._texts, self._prompt if asks else ""])
