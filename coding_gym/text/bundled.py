"""The bundled vocabulary ``coding_gym_16k``: a byte-level BPE of 16,384 entries.

``scripts/train_tokenizer.py`` made the ranks with the split pattern below, so the two belong
together: change the pattern and the file must be trained again.
"""

import base64
from importlib import resources
from typing import Any

from coding_gym.errors import TokenizerError

NAME = "coding_gym_16k"
VOCAB_SIZE = 16_384

SPECIAL_TOKENS = {
    "<|endoftext|>": VOCAB_SIZE - 4,
    "<|im_start|>": VOCAB_SIZE - 3,
    "<|im_end|>": VOCAB_SIZE - 2,
    "<|pad|>": VOCAB_SIZE - 1,
}

# No look-around and no possessive repeats: tiktoken then hands the whole pattern to a linear-time
# engine, and no output of a command can make encoding slow. A line end takes the next line's
# indentation with it, because in code the two are one fact.
SPLIT_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",  # a word, with the one mark or space before it
        r"\p{N}{1,3}",  # digits in groups of at most three
        r" ?[^\s\p{L}\p{N}]+(?:[\r\n]+[ \t]*)?",  # marks, with the line's end if they close it
        r"\s*[\r\n]+[ \t]*",  # line ends and the indentation after them
        r"\s+",  # any other blank space
    )
)


def read_ranks() -> dict[bytes, int]:
    """Returns the mergeable ranks: every byte sequence of the vocabulary with its id.

    Raises:
        TokenizerError: The package's data file is missing or damaged.
    """
    file = resources.files("coding_gym.text").joinpath("data", f"{NAME}.tiktoken")
    try:
        lines = file.read_bytes().splitlines()
        pairs = (line.split() for line in lines)
        ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    except (OSError, ValueError) as error:
        raise TokenizerError(
            f"the vocabulary {NAME} cannot be read ({error}); reinstall coding-gym"
        ) from error
    if len(ranks) != VOCAB_SIZE - len(SPECIAL_TOKENS):
        raise TokenizerError(
            f"the vocabulary {NAME} has {len(ranks)} entries, expected "
            f"{VOCAB_SIZE - len(SPECIAL_TOKENS)}; reinstall coding-gym"
        )
    return ranks


def encoding_arguments() -> dict[str, Any]:
    """Returns the keyword arguments of ``tiktoken.Encoding`` for the bundled vocabulary."""
    return {
        "name": NAME,
        "pat_str": SPLIT_PATTERN,
        "mergeable_ranks": read_ranks(),
        "special_tokens": SPECIAL_TOKENS,
        "explicit_n_vocab": VOCAB_SIZE,
    }
