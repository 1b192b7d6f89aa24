"""Tokenizers on tiktoken: the bundled vocabulary, and any encoding tiktoken knows by name."""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import tiktoken
import tiktoken.registry

from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError, TokenizerError
from coding_gym.text import bundled
from coding_gym.text.tokenizers import END_TOKENS, PAD_TOKENS

# tiktoken downloads with no time limit of its own.
DOWNLOAD_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class TiktokenTokenizer:
    """A `Tokenizer` on a tiktoken encoding."""

    name: str
    encoding: tiktoken.Encoding
    special_tokens: Mapping[str, int]

    @property
    def vocab_size(self) -> int:
        """One more than the largest id."""
        return self.encoding.n_vocab

    @property
    def pad_id(self) -> int:
        """The padding id; the end-of-text id or 0 where there is none."""
        return next((self.special_tokens[t] for t in PAD_TOKENS if t in self.special_tokens), 0)

    @property
    def end_ids(self) -> frozenset[int]:
        """The ids that end a reply."""
        ends = (self.special_tokens[t] for t in END_TOKENS if t in self.special_tokens)
        return frozenset(ends)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of ``text``, in which nothing is a control token."""
        return self.encoding.encode_ordinary(text)

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ``ids``."""
        tokens = [int(i) for i in ids]
        try:
            return self.encoding.decode(tokens, errors="replace")
        except (KeyError, OverflowError) as error:
            if all(0 <= i < self.vocab_size for i in tokens):
                return b"".join(map(self._bytes, tokens)).decode(errors="replace")
            raise InvalidArgumentError(
                f"token ids must be in the vocabulary {self.name} (0 to {self.vocab_size - 1}): "
                f"{error}"
            ) from error

    def _bytes(self, token: int) -> bytes:
        try:
            return self.encoding.decode_single_token_bytes(token)
        except KeyError:  # OpenAI's encodings have gaps between text and control tokens
            return "\ufffd".encode()


def load_tiktoken(name: str) -> TiktokenTokenizer:
    """Returns the tokenizer of a tiktoken encoding, with or without the prefix ``tiktoken:``.

    Raises:
        UnknownNameError: There is no such encoding.
        TokenizerError: Its vocabulary cannot be had here.
    """
    bare = name.removeprefix("tiktoken:")
    if bare == bundled.NAME:
        # Loaded directly, so that no other plug-in is imported and none needs to be installed.
        arguments = bundled.encoding_arguments()
    else:
        arguments = _construct(bare, _constructor(bare))
    special: dict[str, int] = arguments["special_tokens"]
    return TiktokenTokenizer(name, tiktoken.Encoding(**arguments), special)


def _constructor(name: str) -> Callable[[], dict[str, Any]]:
    known = tiktoken.list_encoding_names()
    constructors = tiktoken.registry.ENCODING_CONSTRUCTORS
    if constructors is None or name not in constructors:
        raise unknown_name("tokenizer", name, {bundled.NAME, *known, "hf:/path/to/tokenizer"})
    return constructors[name]


def _construct(name: str, constructor: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Runs a constructor, which may download, and gives up on it after a bounded time."""
    result: dict[str, Any] = {}
    failure: list[Exception] = []

    def construct() -> None:
        try:
            result.update(constructor())
        except Exception as error:  # noqa: BLE001 - whatever a plug-in or the network raises
            failure.append(error)

    # Outside tiktoken.get_encoding, whose lock a stuck download would keep from every other thread.
    thread = threading.Thread(target=construct, name=f"load-{name}", daemon=True)
    thread.start()
    thread.join(DOWNLOAD_TIMEOUT_S)
    if not thread.is_alive() and not failure:
        return result
    why = type(failure[0]).__name__ if failure else f"no answer in {DOWNLOAD_TIMEOUT_S:g} s"
    raise TokenizerError(
        f"the vocabulary of {name} is not cached on this machine and its download failed ({why}); "
        "point TIKTOKEN_CACHE_DIR at a folder that has it, or use the bundled "
        f"{bundled.NAME}"
    ) from (failure[0] if failure else None)
