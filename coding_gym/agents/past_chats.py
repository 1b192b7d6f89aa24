"""An index of the chats of one episode, to find the chat that a request continues."""

import hashlib
import json
from collections.abc import Callable, Sequence

from coding_gym.tools.formats import content_text, message_calls
from coding_gym.trajectory import Message

_OPTIONAL_FIELDS = ("tool_calls", "tool_call_id", "name", "reasoning_content")


class PastChats:
    """An index of chats, each a request with its reply; a digest of the messages finds a chat.

    Args:
        key: Returns a text that is the same for equal messages.
    """

    def __init__(self, key: Callable[[Message], str]) -> None:
        self._key = key
        self._numbers: dict[bytes, int] = {}

    def add(self, messages: Sequence[Message], number: int) -> None:
        """Adds a chat that ends with the reply of this number."""
        self._numbers[self._digests(messages)[-1]] = number

    def find(self, messages: Sequence[Message]) -> tuple[int, int | None]:
        """Returns length and number of the longest prefix that is a chat, or 0 and None."""
        digests = self._digests(messages)
        for length in range(len(digests), 0, -1):
            if digests[length - 1] in self._numbers:
                return length, self._numbers[digests[length - 1]]
        return 0, None

    def _digests(self, messages: Sequence[Message]) -> list[bytes]:
        """Returns the digest of each prefix of the messages, the shortest first."""
        digest, digests = hashlib.sha256(), []
        for message in messages:
            digest.update(self._key(message).encode())
            digests.append(digest.digest())
        return digests


def message_key(message: Message) -> str:
    """Returns role, text and calls as JSON, without the call ids, which harnesses change."""
    calls = [[call.name, dict(call.arguments), call.error] for call in message_calls(message)]
    parts = [message["role"], content_text(message.get("content")), calls]
    return json.dumps(parts, sort_keys=True)


def plain_message(message: Message) -> Message:
    """Returns a message with the fields that chat templates read, and its content as text."""
    role = "system" if message["role"] == "developer" else message["role"]
    plain = {"role": role, "content": content_text(message.get("content"))}
    return plain | {name: message[name] for name in _OPTIONAL_FIELDS if message.get(name)}
