"""The bundled tokenizer, and those of local Hugging Face files."""

import random
from pathlib import Path
from typing import Any

import pytest
from model_server import byte_backend

from coding_gym.errors import TokenizerError, UnknownNameError
from coding_gym.text.tokenizers import DEFAULT_TOKENIZER, Tokenizer, get_tokenizer

PROSE = "Timetable.next_departure() raises KeyError for a stop that has no trains on Sunday.\n"
CODE = 'def area(w: float, h: float) -> float:\n    """Prix en €."""\n\n    return w * h\n'


@pytest.fixture
def tokenizer() -> Tokenizer:
    return get_tokenizer(DEFAULT_TOKENIZER)


def random_text(rng: random.Random) -> str:
    pieces = ["\n", "    ", "\t", "self.", "é漢🙂", "12", "<|im_end|>", "\r\n", "==", "\0"]
    return "".join(rng.choices(pieces, k=rng.randrange(40)))


def test_any_text_survives_encoding(tokenizer: Tokenizer) -> None:
    rng = random.Random(0)
    for text in [PROSE, CODE, "", *(random_text(rng) for _ in range(300))]:
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_control_tokens_in_text_are_encoded_as_text(tokenizer: Tokenizer) -> None:
    text = "".join(tokenizer.special_tokens)
    ids = tokenizer.encode(text)
    assert set(ids).isdisjoint(tokenizer.special_tokens.values())
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("name", ["nope", None, Path("hf:nope")])
def test_an_unknown_name_lists_the_known_ones(name: Any) -> None:
    with pytest.raises(UnknownNameError, match=r"nope|None"):
        get_tokenizer(name)


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> Path:
    """A byte-level tokenizer with one control token, as Hugging Face writes it."""
    path = tmp_path / "tokenizer.json"
    byte_backend(["<|im_end|>"]).save(str(path))
    return path


@pytest.mark.slow
def test_a_local_file_and_its_folder_load(tokenizer_file: Path) -> None:
    pytest.importorskip("transformers")
    for name in (f"hf:{tokenizer_file}", f"hf:{tokenizer_file.parent}"):
        tokenizer = get_tokenizer(name)
        assert tokenizer.vocab_size == 257
        assert tokenizer.special_tokens == {"<|im_end|>": 256}
        text = "é<|im_end|>\n  x"
        ids = tokenizer.encode(text)
        assert 256 not in ids
        assert tokenizer.decode(ids) == text
        assert tokenizer.decode(tokenizer.encode("\ud800")) == "\ufffd"


@pytest.mark.slow
def test_tokenizers_that_need_a_download_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(TokenizerError):
        get_tokenizer("hf:some-org/absent-model")
    with pytest.raises(TokenizerError):
        get_tokenizer(f"hf:{tmp_path}")
