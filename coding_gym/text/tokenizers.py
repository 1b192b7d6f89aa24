"""Tokenizers by name, with one interface.

| name | vocabulary |
|---|---|
| ``coding_gym_16k`` | the bundled vocabulary |
| ``hf:/path/to/folder``, ``hf:/path/tokenizer.json`` | a Hugging Face tokenizer on disk |
| ``hf:org/name`` | a tokenizer in the local Hugging Face cache; never downloaded |

tiktoken and transformers are imported at first use, because the imports are slow.
"""

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from coding_gym.arguments import unknown_name
from coding_gym.errors import TokenizerError
from coding_gym.optional import import_extra
from coding_gym.text.truncate import well_formed

DEFAULT_TOKENIZER = "coding_gym_16k"
END_TOKENS = ("<|pad|>", "<|endoftext|>", "<|im_end|>")

# The bundled vocabulary is a byte-level BPE. ``scripts/train_tokenizer.py`` trains it with the
# split pattern below; a change of the pattern requires a new training.
BUNDLED_SIZE = 16_384
BUNDLED_SPECIAL_TOKENS = {
    "<|endoftext|>": BUNDLED_SIZE - 4,
    "<|im_start|>": BUNDLED_SIZE - 3,
    "<|im_end|>": BUNDLED_SIZE - 2,
    "<|pad|>": BUNDLED_SIZE - 1,
}
# The pattern has no look-around and no possessive quantifiers, so that tiktoken uses a linear-time
# engine: encoding is fast for any text. A line end and the next line's indentation are one piece.
SPLIT_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",  # a word, with one symbol or space before it
        r"\p{N}{1,3}",  # digits in groups of at most three
        r" ?[^\s\p{L}\p{N}]+(?:[\r\n]+[ \t]*)?",  # symbols, with the line end after them
        r"\s*[\r\n]+[ \t]*",  # line ends and the indentation after them
        r"\s+",  # any other white space
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizer:
    """Converts text to token ids and back. Threads can share one instance.

    Attributes:
        name: The name that `get_tokenizer` accepts.
        backend: The ``tiktoken.Encoding``, or the tokenizer of ``transformers``.
        vocab_size: The largest id, including added tokens, plus 1.
        pad_id: The id that fills arrays: the padding token's, else the end-of-text token's, else 0.
        special_tokens: The control tokens and their ids, such as ``<|im_end|>``.
        end_ids: The ids that end a reply: padding, end of text and ``<|im_end|>``, if they exist.
        encode: Returns the ids of a text. A control token in the text is encoded as plain
            characters, so the text of a policy cannot end its turn, and a file cannot open a turn.
            Lone surrogates become U+FFFD.
        decode: Returns the text of ids, control tokens included; broken UTF-8 becomes U+FFFD.
    """

    name: str
    backend: Any
    vocab_size: int
    pad_id: int
    special_tokens: Mapping[str, int]
    end_ids: frozenset[int]
    encode: Callable[[str], list[int]]
    decode: Callable[[Iterable[int]], str]


def get_tokenizer(name: str = DEFAULT_TOKENIZER) -> Tokenizer:
    """Returns the tokenizer of a name; each process loads it once.

    Raises:
        UnknownNameError: The name is not ``coding_gym_16k`` and does not begin with ``hf:``.
        TokenizerError: The vocabulary cannot be read.
        MissingDependencyError: An ``hf:`` name needs the extra ``hf``, which is not installed.
    """
    if name == DEFAULT_TOKENIZER:
        return _load_bundled()
    if not isinstance(name, str) or not name.startswith("hf:"):
        raise unknown_name("tokenizer", name, (DEFAULT_TOKENIZER, "hf:/path/to/tokenizer"))
    return _load_huggingface(name)


@cache
def _load_bundled() -> Tokenizer:
    import tiktoken

    file = resources.files("coding_gym.text").joinpath("data", f"{DEFAULT_TOKENIZER}.tiktoken")
    pairs = (line.split() for line in file.read_bytes().splitlines())
    encoding = tiktoken.Encoding(
        name=DEFAULT_TOKENIZER,
        pat_str=SPLIT_PATTERN,
        mergeable_ranks={base64.b64decode(token): int(rank) for token, rank in pairs},
        special_tokens=BUNDLED_SPECIAL_TOKENS,
        explicit_n_vocab=BUNDLED_SIZE,
    )
    special = BUNDLED_SPECIAL_TOKENS
    return Tokenizer(
        name=DEFAULT_TOKENIZER,
        backend=encoding,
        vocab_size=BUNDLED_SIZE,
        pad_id=special["<|pad|>"],
        special_tokens=special,
        end_ids=frozenset(special[token] for token in END_TOKENS),
        encode=encoding.encode_ordinary,
        decode=lambda ids: encoding.decode([int(i) for i in ids]),
    )


@cache
def _load_huggingface(name: str) -> Tokenizer:
    """Returns the tokenizer at ``hf:PATH``, or ``hf:org/name`` from the local cache."""
    target = name.removeprefix("hf:")
    path = Path(target).expanduser()
    transformers = import_extra("transformers", "hf")
    try:
        if path.is_file():
            backend = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))
        else:
            backend = transformers.AutoTokenizer.from_pretrained(
                str(path) if path.exists() else target, local_files_only=True
            )
    except Exception as error:  # transformers raises the exceptions of many file readers
        first_line = str(error).partition("\n")[0] or type(error).__name__
        raise TokenizerError(
            f"the tokenizer {name} cannot be loaded from this machine: {first_line}; name the path "
            "of a folder or tokenizer.json, or run: hf download org/name --include 'tokenizer*'"
        ) from error
    end_ids = [i for i in (backend.pad_token_id, backend.eos_token_id) if i is not None]
    special = {str(token): i for i, token in backend.added_tokens_decoder.items() if token.special}
    return Tokenizer(
        name=name,
        backend=backend,
        vocab_size=max(backend.get_vocab().values(), default=-1) + 1,
        pad_id=next(iter(end_ids), 0),
        special_tokens=special,
        end_ids=frozenset({*end_ids, *(special[t] for t in END_TOKENS if t in special)}),
        encode=lambda text: [
            *backend.encode(well_formed(text), add_special_tokens=False, split_special_tokens=True)
        ],
        decode=lambda ids: backend.decode(
            [int(i) for i in ids], skip_special_tokens=False, clean_up_tokenization_spaces=False
        ),
    )
