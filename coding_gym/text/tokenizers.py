"""Tokenizers by name, each behind the same small interface.

| name | vocabulary |
|---|---|
| ``coding_gym_16k`` | the bundled one, which needs no network |
| ``cl100k_base``, ``tiktoken:cl100k_base`` | any encoding of tiktoken or of a plug-in |
| ``hf:/path/to/folder``, ``hf:/path/tokenizer.json`` | a local Hugging Face tokenizer |
| ``hf:org/name`` | the same from the local Hugging Face cache; never downloaded |
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Protocol

from coding_gym.errors import InvalidArgumentError

DEFAULT_TOKENIZER = "coding_gym_16k"
PAD_TOKENS = ("<|pad|>", "<|endoftext|>")
END_TOKENS = (*PAD_TOKENS, "<|im_end|>")


class Tokenizer(Protocol):
    """Text to token ids and back. Safe to share between threads."""

    @property
    def name(self) -> str:
        """The name that `get_tokenizer` takes."""
        ...

    @property
    def vocab_size(self) -> int:
        """One more than the largest id."""
        ...

    @property
    def pad_id(self) -> int:
        """The id that fills arrays; the end-of-text id where a vocabulary has no padding."""
        ...

    @property
    def end_ids(self) -> frozenset[int]:
        """The ids that end a reply: padding, end of text, ``<|im_end|>`` where there is one."""
        ...

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The control tokens and their ids, such as ``<|im_end|>``."""
        ...

    def encode(self, text: str) -> list[int]:
        """Returns the ids of ``text``.

        What looks like a control token in ``text`` is encoded as the characters it is made of:
        a policy cannot end its turn, nor a file open a new one, by spelling a control token. Lone
        surrogates become U+FFFD.
        """
        ...

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ``ids``, control tokens included.

        Broken UTF-8 becomes U+FFFD. So does an id below ``vocab_size`` that no token has, where
        the tokenizer's library does not leave it out.

        Raises:
            InvalidArgumentError: An id is not in the vocabulary.
        """
        ...


@cache
def get_tokenizer(name: str = DEFAULT_TOKENIZER) -> Tokenizer:
    """Returns the tokenizer called ``name``, loaded once per process.

    Raises:
        UnknownNameError: tiktoken knows no such encoding.
        TokenizerError: The vocabulary is not on this machine and cannot be fetched, or is damaged.
        MissingDependencyError: An ``hf:`` name without the ``hf`` extra.
    """
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"tokenizer must be a name, got {name!r}")
    if name.startswith("hf:"):
        from coding_gym.text.huggingface import load_huggingface

        return load_huggingface(name)
    from coding_gym.text.tiktoken_encodings import load_tiktoken

    return load_tiktoken(name)
