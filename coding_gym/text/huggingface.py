"""Tokenizers from local Hugging Face folders and files. Needs the ``hf`` extra; no network."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coding_gym.errors import InvalidArgumentError, MissingDependencyError, TokenizerError
from coding_gym.text.tokenizers import END_TOKENS
from coding_gym.text.unicode import well_formed


@dataclass(frozen=True, slots=True)
class HuggingFaceTokenizer:
    """A `Tokenizer` on a Hugging Face one.

    Attributes:
        name: The name it was asked for by.
        backend: The ``transformers`` tokenizer, for its chat template.
        vocab_size: One more than the largest id, added tokens included.
        pad_id: The padding id; the end-of-text id or 0 where there is none.
        special_tokens: The control tokens and their ids.
        end_ids: The ids that end a reply: padding, end of text, ``<|im_end|>``.
    """

    name: str
    backend: Any
    vocab_size: int
    pad_id: int
    special_tokens: Mapping[str, int]
    end_ids: frozenset[int]

    def encode(self, text: str) -> list[int]:
        """Returns the ids of ``text``, in which nothing is a control token."""
        ids = self.backend.encode(
            well_formed(text), add_special_tokens=False, split_special_tokens=True
        )
        return list(ids)

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ``ids``."""
        tokens = [int(i) for i in ids]
        outside = next((i for i in tokens if not 0 <= i < self.vocab_size), None)
        if outside is not None:
            raise InvalidArgumentError(
                f"token ids must be in the vocabulary {self.name} (0 to {self.vocab_size - 1}), "
                f"got {outside}"
            )
        text: str = self.backend.decode(
            tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text


def load_huggingface(name: str) -> HuggingFaceTokenizer:
    """Returns the tokenizer at ``hf:PATH``, or ``hf:org/name`` from the local cache.

    Raises:
        MissingDependencyError: The ``hf`` extra is not installed.
        TokenizerError: Nothing usable is there. Nothing is ever downloaded.
    """
    target = name.removeprefix("hf:")
    path = Path(target).expanduser()
    if target.startswith(("/", ".", "~")) and not path.exists():
        raise TokenizerError(f"{name}: there is no folder or tokenizer.json at {path}")
    try:
        import transformers
    except ImportError as error:
        raise MissingDependencyError(
            f"the tokenizer {name} needs transformers; run: pip install 'coding-gym[hf]'"
        ) from error
    try:
        if path.is_file():
            backend = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))
        else:
            backend = transformers.AutoTokenizer.from_pretrained(
                str(path) if path.exists() else target, local_files_only=True
            )
    except Exception as error:  # transformers raises whatever its many file readers do
        raise TokenizerError(
            f"{name} cannot be loaded from this machine ({type(error).__name__}); download it "
            f"first, for example: hf download {target} --include 'tokenizer*'"
            if not path.exists()
            else f"{name} holds no tokenizer that transformers can read: {_first_line(error)}"
        ) from error
    return _wrap(name, backend)


def _wrap(name: str, backend: Any) -> HuggingFaceTokenizer:
    ends = [i for i in (backend.pad_token_id, backend.eos_token_id) if i is not None]
    special = {str(token): i for i, token in backend.added_tokens_decoder.items() if token.special}
    turn_end = [special[token] for token in END_TOKENS if token in special]
    return HuggingFaceTokenizer(
        name,
        backend,
        vocab_size=max(backend.get_vocab().values(), default=-1) + 1,
        pad_id=next(iter(ends), 0),
        special_tokens=special,
        end_ids=frozenset({*ends, *turn_end}),
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
