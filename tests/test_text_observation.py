import numpy as np
import pytest

from coding_gym.errors import InvalidArgumentError
from coding_gym.text.observation import encode_observation
from coding_gym.text.tokenizers import get_tokenizer


def test_short_text_is_padded_on_the_right() -> None:
    tokenizer = get_tokenizer()
    ids = tokenizer.encode("one failing test")
    observation = encode_observation("one failing test", tokenizer, 16)
    assert observation["input_ids"].dtype == np.int32
    assert observation["attention_mask"].dtype == np.int8
    assert observation["input_ids"].tolist() == ids + [tokenizer.pad_id] * (16 - len(ids))
    assert observation["attention_mask"].tolist() == [1] * len(ids) + [0] * (16 - len(ids))


def test_long_text_keeps_its_tail() -> None:
    tokenizer = get_tokenizer()
    text = " ".join(str(i) for i in range(200))
    observation = encode_observation(text, tokenizer, 8)
    assert observation["input_ids"].tolist() == tokenizer.encode(text)[-8:]
    assert observation["attention_mask"].tolist() == [1] * 8


def test_text_that_just_fits_is_whole() -> None:
    tokenizer = get_tokenizer()
    ids = tokenizer.encode("def f(): pass")
    observation = encode_observation("def f(): pass", tokenizer, len(ids))
    assert observation["input_ids"].tolist() == ids


def test_no_text_is_all_padding() -> None:
    observation = encode_observation("", get_tokenizer(), 4)
    assert observation["attention_mask"].tolist() == [0, 0, 0, 0]
    assert observation["input_ids"].tolist() == [get_tokenizer().pad_id] * 4


def test_no_room_at_all_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"max_tokens must be .* at least 1, got 0"):
        encode_observation("x", get_tokenizer(), 0)
