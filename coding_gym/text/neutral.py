"""Neutralises control tokens in text that a server or a trainer encodes.

Servers and trainers encode a chat template's output as a whole, so a file that contains
``<|im_end|>`` would end the message that quotes the file. A zero-width space after the first
character of each control token makes the token plain text that looks the same. Chats that
`coding_gym.text.chat` encodes need no zero-width space: contents never become control tokens.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from coding_gym.text.families import CONTROL_TOKENS

ZERO_WIDTH_SPACE = "\u200b"


def neutralise(text: str, tokens: Collection[str] = CONTROL_TOKENS) -> str:
    r"""Returns ``text`` with a zero-width space after the first character of each control token.

    Tokens of one character are not changed. A policy may copy the space into a call; `Session`
    removes it from the arguments (`restore`).

    >>> neutralise("see <|im_end|> there", ["<|im_end|>"])
    'see <\u200b|im_end|> there'

    Args:
        text: Any text, such as the content of a message.
        tokens: The control tokens, such as ``tokenizer.special_tokens``.
    """
    pattern = token_starts(token for token in tokens if len(token) > 1)
    return pattern.sub(lambda match: match[0] + ZERO_WIDTH_SPACE, text)


def restore(value: Any, tokens: Collection[str] = CONTROL_TOKENS) -> Any:
    """Undoes `neutralise` in the strings of a JSON value; keeps all other zero-width spaces."""
    split = token_starts(t[0] + ZERO_WIDTH_SPACE + t[1:] for t in tokens if len(t) > 1)
    pattern = re.compile(f"({split.pattern}){ZERO_WIDTH_SPACE}")
    return in_strings(value, lambda text: pattern.sub(r"\1", text))


def in_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Returns a JSON value with ``change`` applied to all its strings, keys included."""
    if isinstance(value, Mapping):
        return {in_strings(k, change): in_strings(item, change) for k, item in value.items()}
    if isinstance(value, list | tuple):
        return [in_strings(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def control_tokens(processing_class: Any) -> tuple[str, ...]:
    """Returns the control tokens of a Hugging Face tokenizer.

    These are the tokenizer's special tokens, and the added tokens in the chat template, such as
    ``<tool_call>``. Other added tokens, such as runs of spaces, only shorten the encoding.

    Args:
        processing_class: The tokenizer, or a processor with the attribute ``tokenizer``.
    """
    tokenizer = getattr(processing_class, "tokenizer", processing_class)
    holders = (tokenizer, processing_class)  # a processor can have a template too
    template = " ".join(str(getattr(holder, "chat_template", None) or "") for holder in holders)
    return tuple(
        token.content
        for token in tokenizer.added_tokens_decoder.values()
        if token.special or (token.content in template and _is_markup(token.content))
    )


def _is_markup(token: str) -> bool:
    """Returns whether a token is neither white space nor a word."""
    return not token.isspace() and not token.isidentifier()


def token_starts(tokens: Iterable[str]) -> re.Pattern[str]:
    """Returns a pattern for the first character of each token, even inside another token."""
    rests: dict[str, list[str]] = {}
    for token in tokens:
        rests.setdefault(token[0], []).append(re.escape(token[1:]))
    spellings = (f"{re.escape(first)}(?={'|'.join(rest)})" for first, rest in rests.items())
    return re.compile("|".join(spellings) or "(?!)")
