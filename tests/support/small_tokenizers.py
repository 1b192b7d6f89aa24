"""Tokenizers of bytes: as Hugging Face saves them, as tiktoken registers them, and one that counts.

What needs a package that is not installed skips the test.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import tiktoken.registry

from coding_gym.text.tokenizers import Tokenizer

# A template with what those of chat models have: tools, results grouped in one message.
TEMPLATE = """\
{%- for message in messages %}
{%- if message.role == "system" %}
{{- "<|im_start|>system\\n" + message.content }}
{%- if tools %}{{- "\\nTools: " + (tools | tojson) }}{%- endif %}
{{- "<|im_end|>\\n" }}
{%- elif message.role == "tool" %}
{%- if loop.previtem.role != "tool" %}{{- "<|im_start|>user" }}{%- endif %}
{{- "\\n<tool_response>\\n" + message.content + "\\n</tool_response>" }}
{%- if loop.last or loop.nextitem.role != "tool" %}{{- "<|im_end|>\\n" }}{%- endif %}
{%- else %}
{{- "<|im_start|>" + message.role + "\\n" + message.content + "<|im_end|>\\n" }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- "<|im_start|>assistant\\n" }}{%- endif %}
"""
TURNS = ("<|im_start|>", "<|im_end|>")
# Across the line ends of the template.
MERGES = (("Ċ", "<"), (")", "Ċ"), (">", "Ċ"), ("r", "Ċ"))


def byte_backend(special: Sequence[str], merges: Sequence[tuple[str, str]] = ()) -> Any:
    """A byte-level tokenizer of the package ``tokenizers``, with control tokens."""
    tokenizers = pytest.importorskip("tokenizers")
    level = tokenizers.pre_tokenizers.ByteLevel
    tokens = [*sorted(level.alphabet()), *map("".join, merges)]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[*merges]))
    backend.pre_tokenizer = level(add_prefix_space=False, use_regex=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    backend.add_special_tokens([*special])
    return backend


def save_tokenizer(
    folder: Path, template: str | None, special: Sequence[str] = TURNS, **options: Any
) -> str:
    """Saves a byte-level tokenizer with a chat template, and returns its name."""
    pytest.importorskip("jinja2")
    transformers = pytest.importorskip("transformers")
    backend = byte_backend(special, MERGES)
    backend.add_tokens(["<tool_response>", "</tool_response>"])
    whole = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **options)
    whole.chat_template = template
    whole.save_pretrained(folder)
    return f"hf:{folder}"


def register_encoding(patch: pytest.MonkeyPatch, name: str, make: Callable[[], object]) -> None:
    """Adds an encoding to those that tiktoken knows by name."""
    tiktoken.list_encoding_names()
    constructors = tiktoken.registry.ENCODING_CONSTRUCTORS
    assert constructors is not None
    patch.setitem(constructors, name, make)


def register_bytes(patch: pytest.MonkeyPatch, name: str, end_id: int) -> None:
    """Adds an encoding of the 256 bytes and one control token."""
    arguments = {
        "name": name,
        "pat_str": r"[\s\S]",
        "mergeable_ranks": {bytes([b]): b for b in range(256)},
        "special_tokens": {"<|endoftext|>": end_id},
    }
    register_encoding(patch, name, lambda: arguments)


class CountingTokenizer:
    """Adds up how many characters it was given to encode."""

    encoded = 0

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        self.encoded += len(text)
        return self._tokenizer.encode(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)
