import sys
from pathlib import Path

import pytest
from model_server import byte_backend

from coding_gym.errors import InvalidArgumentError, MissingDependencyError, TokenizerError
from coding_gym.text.tokenizers import get_tokenizer

pytestmark = pytest.mark.slow


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> Path:
    """A byte-level tokenizer with one control token, as Hugging Face writes it."""
    path = tmp_path / "tokenizer.json"
    byte_backend(["<|im_end|>"]).save(str(path))
    return path


def test_a_missing_path_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError):
        get_tokenizer(f"hf:{tmp_path}/absent")


def test_without_the_extra_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDependencyError):
        get_tokenizer(f"hf:{tmp_path}")


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
        with pytest.raises(InvalidArgumentError):
            tokenizer.decode([999])


def test_a_folder_saved_by_transformers_brings_its_padding(tokenizer_file: Path) -> None:
    transformers = pytest.importorskip("transformers")
    folder = tokenizer_file.parent / "saved"
    backend = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tokenizer_file))
    backend.add_special_tokens({"eos_token": "<|im_end|>"})
    backend.save_pretrained(folder)
    assert get_tokenizer(f"hf:{folder}").pad_id == 256


def test_what_would_need_a_download_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(TokenizerError):
        get_tokenizer("hf:some-org/absent-model")
    with pytest.raises(TokenizerError):
        get_tokenizer(f"hf:{tmp_path}")
